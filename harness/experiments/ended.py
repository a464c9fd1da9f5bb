"""What is left of a run of one of harness.experiments.kinds when it has ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar


class Named(Protocol):
    """A variant of an experiment."""

    @property
    def name(self) -> str: ...

    def identity(self) -> dict[str, Any]:
        """As it stands in ``run.json``."""
        ...


V = TypeVar("V", bound=Named)


@dataclass(slots=True)
class EndedVariant(Generic[V]):
    """One run that ended. ``why``: what went wrong, where ``exit_code`` is not 0."""

    variant: V
    path: Path
    summary: dict[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    why: str | None = None

    @property
    def name(self) -> str:
        return self.variant.name

    def document(self) -> dict[str, Any]:
        """As ``run --json`` prints it."""
        return {
            **self.variant.identity(),
            "directory": str(self.path),
            "exit": self.exit_code,
            **({"why": self.why} if self.why else {}),
            "summary": self.summary,
        }
