"""The virtual-time YARN: clock, Fair Scheduler, applications, nodes. Compiled code is kept on disk between runs."""

from __future__ import annotations

from harness.base.machine_code import keep_compiled_code

keep_compiled_code()
