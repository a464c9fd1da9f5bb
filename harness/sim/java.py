"""Java's arithmetic where it differs from Python's."""

# mypy: disable-error-code="no-any-return,attr-defined"
# (records have their fields as attributes only in compiled code)

from __future__ import annotations

from harness.sim.kernel import kernel

_LONG_MAX = 2**63 - 1


@kernel
def to_long(x: float) -> int:
    """Convert a double as Java's cast to long does: truncate toward zero, saturate, and return 0 for NaN."""
    if x != x:
        return 0
    if x >= 9.223372036854775807e18:
        return _LONG_MAX
    if x <= -9.223372036854775808e18:
        return -_LONG_MAX - 1
    return int(x)
