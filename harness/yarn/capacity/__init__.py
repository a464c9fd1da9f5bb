"""The Capacity Scheduler's configuration on a real ResourceManager: properties, queues, storage, traps.

``harness.control`` decides the capacities of queues; ``harness.sim.capacity`` simulates how the scheduler uses them.
"""
