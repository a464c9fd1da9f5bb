"""The papers' MapReduce applications as programs that compute.

This package has their catalogue, submits them, and checks their output.
"""
