"""Java's arithmetic where it differs from Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from harness.sim.kernel import kernel

#: Round to the nearest float32, as Java's cast to ``float`` does; the sum, product or quotient of two such numbers has
#: to be rounded again. Declared as a function because fields of records and results of kernels count as ``float``.
single = cast("Callable[[float], float]", np.float32)

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
