"""Access to yarn-site properties with the semantics of Hadoop's Configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.base.errors import InputError
from harness.yarn.fair.javanum import parse_boolean

_LONG_MAX = 2**63 - 1


class Conf:
    """yarn-site properties, read as Hadoop's Configuration reads them. Raises InputError where Hadoop would throw."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self._properties = properties

    def _text(self, name: str) -> str | None:
        value = self._properties.get(name)
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value).strip()

    def integer(self, name: str, default: int, limit: int = 2**31 - 1) -> int:
        """Return an integer property. Raises InputError."""
        text = self._text(name)
        if text is None:
            return default
        try:
            value = int(text, 16) if text.lower().startswith(("0x", "-0x")) else int(text)
        except ValueError:
            raise InputError(f"property {name}: {text!r} is not a number", hint="write an integer") from None
        if not -limit - 1 <= value <= limit:
            raise InputError(f"property {name}: {text} is out of range", hint="write a smaller number")
        return value

    def real(self, name: str, default: float) -> float:
        """Return a floating-point property. Raises InputError."""
        text = self._text(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise InputError(f"property {name}: {text!r} is not a number", hint="write a decimal number")
        return float(np.float32(value))

    def flag(self, name: str, default: bool) -> bool:
        """Return a Boolean property; the default for any other text, as in Hadoop."""
        return parse_boolean(self._text(name) or "", default)

    def size(self, resource: str, name: str, default: int) -> int:
        """Return an allocation increment; ``yarn.resource-types.R.increment-allocation`` overrides the older name."""
        text = self._text(f"yarn.resource-types.{resource}.increment-allocation")
        if text is None:
            return self.integer(name, default, _LONG_MAX)
        digits = text.rstrip("GgMmTtKkiIbB ")
        unit = text[len(digits) :].strip()
        factors = {"": 1, "Mi": 1, "Gi": 1024, "Ti": 1024**2} if resource == "memory-mb" else {"": 1}
        if not digits.isdigit() or unit not in factors:
            raise InputError(f"increment of {resource}: {text!r} is not understood", hint="write a plain number")
        return int(digits) * factors[unit]
