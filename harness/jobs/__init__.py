"""Jobs: workloads, the programs that they consist of, their engines and their data."""
