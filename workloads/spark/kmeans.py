"""k-means by Spark's MLlib over points written as numbers with blanks between them, one a line.

kmeans.py CALL.json: {"input": ["/data/points/part-00000.txt"], "k": 10, "iterations": 10, "tolerance": 0, "seed": 1,
"answer": ...}
The answer: {"centres": [[...]], "cost": sum of squared distances, "iterations": n, "points": n}
"""

import json
import os
import sys

from pyspark.ml.clustering import KMeans
from pyspark.ml.functions import array_to_vector
from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(call):
    spark = SparkSession.builder.getOrCreate()
    numbers = f.split(f.col("value"), " ").cast("array<double>")
    points = spark.read.text(call["input"]).select(array_to_vector(numbers).alias("features")).persist()
    model = KMeans(
        k=call["k"], maxIter=call["iterations"], tol=call["tolerance"], seed=call["seed"], featuresCol="features"
    ).fit(points)
    answer = {
        "centres": [centre.tolist() for centre in model.clusterCenters()],
        "cost": model.summary.trainingCost,
        "iterations": model.summary.numIter,
        "points": points.count(),
    }
    with open(call["answer"] + ".part", "w", encoding="utf-8") as out:
        json.dump(answer, out)
    os.replace(call["answer"] + ".part", call["answer"])
    spark.stop()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as text:
        main(json.load(text))
