"""Spark programs on a real YARN: TPC-H's queries by Spark SQL, k-means and ALS by MLlib, answers checked.

One program, to its end::

    from harness.jobs.spark.catalogue import members, program      # "tpch-q1" ... "tpch-q22", "kmeans", "als"
    from harness.jobs.spark.client import SparkClient, SparkRequest
    from harness.jobs.spark.plan import SparkSizes
    from harness.jobs.spark.site import site_of

    site = site_of(shared, python)          # the cluster's SharedFolder (harness.jobs.submit), the nodes' Python
    client = SparkClient(rest, site, tag=tag, progress=say, stop=event)
    sizes = SparkSizes(executors=2, executor_mb=1024, executor_cores=1, am_mb=1024)
    done = client.run(SparkRequest(program("tpch-q1"), data, output, "root.tpch", sizes))

``data`` is a data set of this machine (``yarnfair data generate tpch|points|ratings``); for a Docker cluster it and
Spark are copied into the cluster's volume the first time. ``done`` is what MapReduce's client gives
(`harness.jobs.mapreduce.client.Done`): applications, attempts (kind ``executor`` and ``task``), verdict.

Several at once, followed by the caller::

    one = client.submit(request)            # one.app: its id; CallError, InputError before anything starts
    app = rest.app(one.app)                 # until app.final
    done = client.collect(one, app)         # RunInvalid: it failed, and why
    rows = client.attempts(one)             # what was measured, of a killed or failed one too
    client.kill(one)

A client may be used by several threads, each with requests of its own. ``members("tpch")``: the papers' four queries.
``engine_document([one, ...])``: version and settings of Spark for ``run.json``.
"""
