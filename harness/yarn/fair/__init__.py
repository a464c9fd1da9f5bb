"""The Fair Scheduler's allocation file: parsing like Hadoop, writing, validation and editing; and the resulting queues.

``parse_allocations`` -> `harness.model.queues.AllocationFile`; ``QueueManager`` creates the queue tree from it.
harness.sim.shares computes fair shares. This package does not transfer a file to an RM.
"""
