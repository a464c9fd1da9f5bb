"""Optional capabilities of a policy besides its plan: one protocol for each.

A policy has a capability if it has the protocol's method. Callers test for it with ``isinstance``. A policy only needs
`Policy.plan`. Systems with a model of their own declare further protocols beside that model (`SlotPolicy` of
`harness.systems.dynamicmr.rules`, `SubmissionPolicy` of `harness.experiments.submissions` and others).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from harness.model.snapshot import Figures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.policies.vectors import Division, VectorScenario


@runtime_checkable
class VectorPolicy(Protocol):
    """A policy that divides several resources on paper."""

    def divide(self, scenario: VectorScenario) -> Division:
        """Return the number of tasks of each user.

        Parameters
        ----------
        scenario
            Users with a demand vector per task, and the capacity of each resource.

        Returns
        -------
        Division
            The number of tasks of each user.
        """
        ...


@runtime_checkable
class FigurePolicy(Protocol):
    """A policy whose weights can be computed from arrays of values, much faster than from a snapshot."""

    def weigh(
        self, figures: Figures, columns: NDArray[np.float64], before: NDArray[np.float64], period_s: float
    ) -> NDArray[np.float64] | None:
        """Return the weights of `Policy.plan`, if the plan consists only of these.

        Parameters
        ----------
        figures
            Values of a simulation's queues.
        columns
            The ledger's columns (`harness.ledger.Ledger.columns`).
        before
            The previous weights, one number per queue in the order of the figures' shape.
        period_s
            Seconds until the next call.

        Returns
        -------
        array or None
            ``before`` itself if the weights do not change, otherwise the new weights. None if `Policy.plan` has to be
            called.
        """
        ...


@runtime_checkable
class KnobPolicy(Protocol):
    """A policy with a knob between fairness and efficiency, for which a theorem bounds the soft fairness."""

    def knob(self) -> Fraction | None:
        """Return the knob rho of QKnober's Theorem 1. None: there is no such bound with these settings."""
        ...


@runtime_checkable
class MeasuringPolicy(Protocol):
    """A policy that replaces accumulated resources by a measure of its own (a priority, a smoothed usage)."""

    def figure(self, time_s: float, counted: float, capacity: float) -> float:
        """Return the measure of a leaf.

        Parameters
        ----------
        time_s
            Seconds since accounting began; on paper, steps.
        counted
            The leaf's counted accumulated resources, in resource-seconds of the policy's ledger.
        capacity
            The cluster's capacity in the ledger's resource.
        """
        ...


@runtime_checkable
class ReplanningPolicy(Protocol):
    """A policy whose plan inside the scheduler depends on measurements."""

    @property
    def replans(self) -> bool:
        """Return whether the plan has to be recomputed periodically with these settings."""
        ...
