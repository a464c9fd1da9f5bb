"""The papers' MapReduce applications as programs that compute.

Their catalogue, submission, and the check of their output.
"""
