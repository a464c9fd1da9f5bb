"""MR-clusters and layouts of nodes (FAWKES; docs/reference/fawkes.md)."""
