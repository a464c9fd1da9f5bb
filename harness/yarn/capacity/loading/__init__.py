"""Everything that Hadoop's Capacity Scheduler refuses in its configuration, at its start and at a refresh.

The order and the arithmetic follow ``CapacityScheduler.initScheduler``, ``CapacitySchedulerQueueManager``,
``AbstractCSQueue.setupQueueConfigs`` and what they call, in 3.4.2 and 3.5.0. Hadoop stops at the first exception; this
package collects all that are not consequences of others. tests/oracle/test_capacity_loading.py compares both.

``start`` reads the tree in Hadoop's order, and ``reading`` contains the properties, the refusals and the record of a
queue. ``labels``, ``capacities`` and ``queue`` check one queue, ``children`` checks siblings together, and
``scheduler`` and ``placement`` check the scheduler as a whole.
"""
