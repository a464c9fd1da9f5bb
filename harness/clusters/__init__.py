"""Start, examine and stop clusters of local processes, of Docker Compose containers, or of hosts over SSH.

harness.yarn communicates with the ResourceManager of such a cluster.
"""
