"""Alternating least squares by Spark's MLlib over lines "user,item,rating".

als.py CALL.json: {"input": ["/data/ratings/part-00000.csv"], "rank": 5, "iterations": 10, "regularisation": 0.1,
"seed": 1, "blocks": 2, "checkpoint": "file:///shared/x", "answer": ...}
The answer: {"users": {id: [...]}, "items": {id: [...]}, "rmse": over the ratings it learnt from, "ratings": n}
"""

import json
import os
import sys

from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(call):
    spark = SparkSession.builder.getOrCreate()
    # Every iteration stands on all before it: cut every third, or their description outgrows the executors' stack.
    spark.sparkContext.setCheckpointDir(call["checkpoint"])
    ratings = spark.read.csv(call["input"], schema="user int, item int, rating float").persist()
    model = ALS(
        rank=call["rank"],
        maxIter=call["iterations"],
        regParam=call["regularisation"],
        seed=call["seed"],
        numUserBlocks=call["blocks"],
        numItemBlocks=call["blocks"],
        checkpointInterval=3,
    ).fit(ratings)
    error = f.col("prediction").cast("double") - f.col("rating").cast("double")
    seen = model.transform(ratings).agg(f.avg(error * error).alias("mse"), f.count("*").alias("n")).first()
    answer = {
        "users": {str(row.id): list(row.features) for row in model.userFactors.collect()},
        "items": {str(row.id): list(row.features) for row in model.itemFactors.collect()},
        "rmse": seen.mse**0.5,
        "ratings": seen.n,
    }
    with open(call["answer"] + ".part", "w", encoding="utf-8") as out:
        json.dump(answer, out)
    os.replace(call["answer"] + ".part", call["answer"])
    spark.stop()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as text:
        main(json.load(text))
