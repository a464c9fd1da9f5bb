"""YARN in virtual time: clock, schedulers, applications and nodes. Compiled code is cached on disk between runs."""

from __future__ import annotations

from harness.base.machine_code import keep_compiled_code

keep_compiled_code()
