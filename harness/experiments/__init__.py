"""Experiments: their files, the variants and campaigns that they describe, and running them."""
