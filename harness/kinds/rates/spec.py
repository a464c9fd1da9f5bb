"""The files of ``kind: computing-rates`` (progress share). The keys: docs/reference/progress-share.md."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.base.documents import Strict
from harness.experiments.spec import Scalar, Seed, Slug

Number = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class RateJobSpec(Strict):
    """``sigma``: spread of the log-normal task times around ``seconds`` (their mean); 0: all alike."""

    tasks: Count
    seconds: Number
    sigma: Annotated[float, Field(ge=0, le=3, allow_inf_nan=False)] = 0.0
    rates: dict[str, Number]
    weight: Number = 1.0
    submit_s: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0
    #: The least progress share that it is to have.
    min_share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0


class RatesPolicySpec(Strict):
    policy: str
    settings: dict[str, Scalar] = Field(default_factory=dict)


class RatesExperiment(Strict):
    """Jobs on clusters of several node types (``configurations``: slots by node type), policy by policy."""

    kind: Literal["computing-rates"]
    experiment: Slug
    description: str = ""
    configurations: dict[Slug, dict[str, Count]] = Field(min_length=1, max_length=100)
    jobs: dict[Slug, RateJobSpec] = Field(min_length=1, max_length=1000)
    policies: list[str | RatesPolicySpec] = Field(min_length=1, max_length=100)
    seed: Seed | Annotated[list[Seed], Field(min_length=1, max_length=10_000)] = 1

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
