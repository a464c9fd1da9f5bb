"""Data sets for the papers' workloads: made from a seed, in parts, resumable, each with a manifest."""
