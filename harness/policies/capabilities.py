"""What a policy may answer besides its plan: one protocol for each, which a policy implements by having the method.

Who asks for one tests with ``isinstance`` and does without where a policy has it not. A policy needs `Policy.plan` and
nothing of these. Systems with a model of their own declare theirs beside that model (`SlotPolicy` of
`harness.systems.dynamicmr.rules`, `SubmissionPolicy` of `harness.experiments.submissions` and others).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness.model.snapshot import Figures

if TYPE_CHECKING:
    from harness.policies.vectors import Division, VectorScenario


@runtime_checkable
class VectorPolicy(Protocol):
    """A policy that divides several resources on paper."""

    def divide(self, scenario: VectorScenario) -> Division:
        """Return how many tasks each user gets.

        Parameters
        ----------
        scenario
            Users with a demand vector per task, and the capacity of each resource.

        Returns
        -------
        Division
            The tasks by user.
        """
        ...


@runtime_checkable
class FigurePolicy(Protocol):
    """A policy whose weights can be told from arrays of figures, much faster than from a snapshot."""

    def weigh(self, figures: Figures, columns: Any, before: Any, period_s: float) -> Any:
        """Return the weights of `Policy.plan`, where these are all that it would answer.

        Parameters
        ----------
        figures
            Of a simulation's queues.
        columns
            The ledger's (`harness.ledger.Ledger.columns`).
        before
            The weights before, a number a queue in the order of the figures' shape.
        period_s
            Seconds until the next call.

        Returns
        -------
        array or None
            ``before`` itself where nothing would change, other weights otherwise. None where `Policy.plan` has to be
            asked.
        """
        ...


@runtime_checkable
class KnobPolicy(Protocol):
    """A policy with a knob between fairness and efficiency, for which a theorem bounds the soft fairness."""

    def knob(self) -> Fraction | None:
        """Return the knob rho of QKnober's Theorem 1. None: with these settings there is no such bound."""
        ...


@runtime_checkable
class MeasuringPolicy(Protocol):
    """A policy that goes by a measure of its own (a priority, a smoothed usage), not by accumulated resources."""

    def figure(self, time_s: float, counted: float, capacity: float) -> float:
        """Return the measure of a leaf.

        Parameters
        ----------
        time_s
            Seconds since accounting began; on paper, steps.
        counted
            What the policy's ledger has counted for the leaf, in the ledger's unit.
        capacity
            The cluster's, in the same unit.
        """
        ...


@runtime_checkable
class ReplanningPolicy(Protocol):
    """A policy whose plan inside the scheduler follows what is measured."""

    @property
    def replans(self) -> bool:
        """Whether the plan is to be made anew now and then, with these settings."""
        ...
