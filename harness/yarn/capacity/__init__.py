"""The Capacity Scheduler's configuration on a real ResourceManager: properties, queues, where they are kept, traps.

What a queue's capacity becomes is decided elsewhere (``harness.control``); how the scheduler decides with it is
``harness.sim.capacity``'s business.
"""
