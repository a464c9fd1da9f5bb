"""Models of the files of ``kind: computing-rates`` (progress share). Keys: docs/reference/progress-share.md."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Strict
from harness.experiments.spec import PolicySpec, Seeds, Slug, short_for

Number = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class RateJobSpec(Strict):
    """A job of the file. ``seconds`` is the mean task time; ``sigma`` its log-normal spread, 0 for equal tasks."""

    tasks: Count
    """Number of tasks."""
    seconds: Number
    """Work of a task at rate 1."""
    sigma: Annotated[float, Field(ge=0, le=3, allow_inf_nan=False)] = 0.0
    """Spread of the log-normal task times around it; 0: all alike."""
    rates: dict[str, Number]
    """Node type → computing rate."""
    weight: Number = 1.0
    """Its weight."""
    submit_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    """When it comes."""
    min_share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    """The least progress share that it is to have."""


class RatesExperiment(Strict):
    """``kind: computing-rates``: jobs on clusters of several node types, under each policy.

    ``configurations`` maps a name to the number of slots of each node type.
    """

    kind: Literal["computing-rates"]
    """`computing-rates`."""
    experiment: Slug
    """Its name."""
    description: str = ""
    """A line for the report."""
    configurations: dict[Slug, dict[str, Count]] = Field(min_length=1, max_length=100)
    """Name → slots by node type."""
    jobs: dict[Slug, RateJobSpec] = Field(min_length=1, max_length=1000)
    """Name → job."""
    policies: list[Annotated[PolicySpec, short_for("policy")]] = Field(min_length=1, max_length=100)
    """What runs. `--policy` takes every use of a policy."""
    seed: Seeds = 1
    """A number or a list."""

    @model_validator(mode="after")
    def _known_types(self) -> Self:
        for name, types in self.configurations.items():
            if not types:
                raise ValueError(f"configuration {name} has no node type")
            for kind in types:
                for job, spec in self.jobs.items():
                    if kind not in spec.rates:
                        raise ValueError(f"job {job} has no rate on {kind}, which configuration {name} has")
        return self
