"""SQL queries over parquet tables, one after another; their answers go to a file of JSON lines, one a query.

sql.py CALL.json: {"tables": {"region": {"path": "/data/region.parquet", "schema": "r_regionkey bigint, ..."}},
"queries": {"1": "select ..."}, "answer": ...}
A line of the answer: {"query": "1", "columns": [...], "rows": [[...]], "seconds": how long it took}
"""

import json
import os
import sys
import time

from pyspark.sql import SparkSession


def plain(value):
    # Decimals and dates as their text: nothing is lost on the way.
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def main(call):
    spark = SparkSession.builder.getOrCreate()
    for name, table in call["tables"].items():
        # With its schema given, nothing has to run to find it out.
        spark.read.schema(table["schema"]).parquet(table["path"]).createOrReplaceTempView(name)
    with open(call["answer"] + ".part", "w", encoding="utf-8") as out:
        for name, sql in call["queries"].items():
            began = time.monotonic()
            answer = spark.sql(sql)
            rows = [[plain(value) for value in row] for row in answer.collect()]
            line = {"query": name, "columns": answer.columns, "rows": rows, "seconds": time.monotonic() - began}
            out.write(json.dumps(line) + "\n")
    os.replace(call["answer"] + ".part", call["answer"])
    spark.stop()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as text:
        main(json.load(text))
