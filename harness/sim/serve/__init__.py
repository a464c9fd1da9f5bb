"""A simulated cluster that answers as a ResourceManager does: REST, ``refreshQueues`` and ``getQueueInfo``.

``live`` lets virtual time follow the wall clock, ``documents`` writes the RM's JSON, ``rest`` and ``rpc`` are the
servers, and ``submission`` converts clients' submissions to jobs.
"""
