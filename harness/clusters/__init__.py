"""Clusters: started, examined and stopped. Local processes, Docker Compose and SSH hosts.

harness.yarn communicates with the ResourceManager that runs there.
"""
