"""The Capacity Scheduler's configuration on a real ResourceManager: properties, queues, storage, traps.

``harness.control`` computes the capacities of queues, and ``harness.sim.capacity`` simulates the scheduler.
"""
