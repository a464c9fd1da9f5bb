"""Spark programs on a real YARN: TPC-H's queries by Spark SQL, k-means and ALS by MLlib, with checked answers.

In a Docker cluster, Spark and the data are copied into the cluster's volume on first use.
"""
