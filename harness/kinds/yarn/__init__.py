"""A YARN cluster: simulated, and on real ones (docs/reference/experiment-file.md)."""
