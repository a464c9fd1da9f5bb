"""The Fair Scheduler's allocation file: read as Hadoop reads it, written, checked, edited; and the queues it makes.

``parse_allocations`` -> `harness.model.queues.AllocationFile`; ``QueueManager`` makes the queue tree of it. Fair shares
are harness.sim.shares' business, carrying a file to an RM is not done here.
"""
