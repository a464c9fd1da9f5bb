"""Clusters: brought up, looked at, examined, torn down. Local processes and Docker Compose.

Talking to the ResourceManager that runs there is harness.yarn's business.
"""
