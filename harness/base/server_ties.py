"""First import of the server of worker processes (harness.base.workers): it ties the lifetimes of all processes.

The server ends with the command that started it. Each process that it forks ends with the server, from its first moment
on. This is a module because the standard library's server only executes imports.
"""

from __future__ import annotations

import os

from harness.base.ties import end_with

#: The variable that tells the server the command's process id.
OWNER = "YARNFAIR_WORKERS_OF"
#: In the server and in its workers: the server's process id.
server_pid: int | None = None
#: Whether this process is a fork of the server, or of a worker.
_forked = False


def _tie_worker() -> None:
    global _forked
    # A process that a worker forks does not belong to the server.
    if not _forked and server_pid is not None:
        end_with(server_pid)
    _forked = True


_owner = os.environ.pop(OWNER, None)
if _owner is not None:
    end_with(int(_owner))
    server_pid = os.getpid()
    os.register_at_fork(after_in_child=_tie_worker)
