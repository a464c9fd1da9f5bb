"""The FIFO scheduler of Hadoop 3.4.2 (``FifoScheduler``) in virtual time, decision for decision.

One queue, ``root.default``. A node's heartbeat gives all of the node's memory to applications in the order of their
ids, and within an application to its asks in the order of their priorities. Vcores are not counted: every container has
one. Nothing is reserved or preempted, and no limit keeps an application from running.

Covers asks for any node, but no asks by node or rack, and no blacklists.
"""

from __future__ import annotations
