"""Traces: files of what a cluster ran. Recording, the formats of other tools, accounting of left-out data.

::

    recorded        yarnfair's own format: read, written, as an experiment
    recording       a running cluster's applications, from its ResourceManager
    following       the same without end (`record --follow`)
    node_following  changes of nodes between polls of a ResourceManager
    nodes           nodes of a trace over time
    histories       history servers from which a recording reads tasks
    history         tasks from a JobHistoryServer
    spark_history   event logs from Spark's History Server
    formats         traces of other tools: one reader each
    accounting      what a reader kept and what it left out
    mapreduce       container sizes of MapReduce jobs
    spark           container sizes and dynamic allocation of Spark applications
    sls, swim       loads of Hadoop's load simulator and of SWIM, as workloads
    spec            models of containers, durations, stages and submissions
"""
