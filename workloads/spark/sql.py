"""One SQL query over parquet tables; the answer goes to a file of JSON lines, its columns first.

sql.py CALL.json: {"tables": {"lineitem": "/data/lineitem.parquet"}, "sql": "...", "answer": "/out/answer.jsonl"}
"""

import json
import os
import sys

from pyspark.sql import SparkSession


def main(call):
    spark = SparkSession.builder.getOrCreate()
    for name, path in call["tables"].items():
        spark.read.parquet(path).createOrReplaceTempView(name)
    answer = spark.sql(call["sql"])
    rows = answer.collect()
    with open(call["answer"] + ".part", "w", encoding="utf-8") as out:
        out.write(json.dumps(answer.columns) + "\n")
        for row in rows:
            # Decimals and dates as their text: nothing is lost on the way.
            values = [value if isinstance(value, (int, float, str)) or value is None else str(value) for value in row]
            out.write(json.dumps(values) + "\n")
    os.replace(call["answer"] + ".part", call["answer"])
    spark.stop()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as text:
        main(json.load(text))
