"""Hours on real parts that are broken on purpose: two ResourceManagers, two controllers, faults by chance."""
