"""The data types that all packages share: resources, jobs, queue trees, snapshots, orders and plans."""
