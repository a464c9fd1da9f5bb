"""The kinds of experiment, a folder each. Which there are: harness.results.kinds."""
