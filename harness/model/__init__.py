"""What every part speaks: resources, queue trees, snapshots, orders, plans, errors. Frozen values, no I/O."""
