"""Traces: files of what a cluster ran. Recording, the formats of other tools, accounting of left-out data.

::

    recorded    yarnfair's own format: read, written, as an experiment
    recording   a running cluster's applications, from its ResourceManager
    following   the same without end (`record --follow`)
    history     tasks from a JobHistoryServer
    formats     traces of other tools: one reader each
    accounting  what a reader kept and what it left out
    mapreduce   container sizes of MapReduce jobs
    sls, swim   loads of Hadoop's load simulator and of SWIM, as workloads
    spec        models of containers, durations, stages and submissions
"""
