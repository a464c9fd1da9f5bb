"""The terms that all parts share: resources, queue trees, snapshots, orders, plans, errors. Frozen values, no I/O."""
