"""The map and reduce slots of MRv1 (the thesis; docs/reference/experiment-file.md)."""
