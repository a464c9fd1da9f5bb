"""What a user's queue tree (YAML) may say, key by key: docs/reference/allocation-file.md is made from it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from harness.model.queues import JAVA_INT_MAX, JAVA_LONG_MAX

Number = StrictInt | StrictFloat
Memory = Annotated[StrictInt, Field(ge=0, le=JAVA_LONG_MAX)]
Vcores = Annotated[StrictInt, Field(ge=0, le=JAVA_INT_MAX)]
Percent = Annotated[Number, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Apps = Annotated[StrictInt, Field(ge=0, le=JAVA_INT_MAX)]
Seconds = Annotated[StrictInt, Field(ge=0, le=10**12)]
Fraction = Annotated[Number, Field(ge=0, le=1, allow_inf_nan=False)]
Policy = Literal["fair", "drf", "fifo"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Amount(_Model):
    """An absolute amount; what is left out is 0 in a minimum, without limit in a maximum."""

    memory_mb: Memory | None = None
    vcores: Vcores | None = None


class Limit(Amount):
    """A maximum: an amount, or percentages of the cluster (left out: 100)."""

    memory_percent: Percent | None = None
    vcores_percent: Percent | None = None


class QueueEntry(_Model):
    """One queue."""

    weight: Number | None = None
    """Share against its siblings, 0.001 to 1000000; left out: 1. `weight`."""
    min_resources: Amount | None = None
    """`{memory_mb, vcores}`; a component left out: 0. `minResources`."""
    max_resources: Limit | None = None
    """`{memory_mb, vcores}`, or `{memory_percent, vcores_percent}`; a component left out: no limit, 100 %; the whole
    left out: the default. `maxResources`."""
    max_child_resources: Limit | None = None
    """The same for its ad hoc children. `maxChildResources`."""
    max_container_allocation: Amount | None = None
    """The largest container, `{memory_mb, vcores}`; left out: the parent's. `maxContainerAllocation`."""
    max_running_apps: Apps | None = None
    """0 or more; left out: the default. `maxRunningApps`."""
    max_am_share: Number | None = None
    """0 to 1, -1: no limit; leaves only; left out: the default. `maxAMShare`."""
    min_share_preemption_timeout_s: Seconds | None = None
    """Left out: the parent's. `minSharePreemptionTimeout`."""
    fair_share_preemption_timeout_s: Seconds | None = None
    """Left out: the parent's. `fairSharePreemptionTimeout`."""
    fair_share_preemption_threshold: Fraction | None = None
    """0 to 1; left out: the parent's. `fairSharePreemptionThreshold`."""
    allow_preemption_from: StrictBool = True
    """Also false where the parent says false. `allowPreemptionFrom`."""
    scheduling_policy: Policy | None = None
    """`fair`, `drf` or `fifo`; left out: the default. `schedulingPolicy`."""
    acl_submit_apps: StrictStr | None = None
    """`"users groups"`, each with commas between; left out: nobody (`root`: everybody). `aclSubmitApps`."""
    acl_administer_apps: StrictStr | None = None
    """The same. `aclAdministerApps`."""
    acl_administer_reservations: StrictStr | None = None
    """The same. `aclAdministerReservations`."""
    acl_list_reservations: StrictStr | None = None
    """The same. `aclListReservations`."""
    acl_submit_reservations: StrictStr | None = None
    """The same. `aclSubmitReservations`."""
    reservation: StrictBool = False
    """Leaves only. `reservation`."""
    children: dict[str, QueueEntry] | None = None
    """Name -> queue; given, even empty, the queue is a parent. `queue`."""


class Defaults(_Model):
    """What holds for queues (and users) that do not say it themselves."""

    scheduling_policy: Literal["fair", "drf"] = "fair"
    """Or `drf`."""
    user_max_apps: Apps | None = None
    """Running applications of a user."""
    queue_max_apps: Apps | None = None
    """Running applications of a queue."""
    queue_max_resources: Limit | None = None
    """As a queue's `max_resources`."""
    queue_max_am_share: Number | None = None
    """As a queue's `max_am_share`."""
    min_share_preemption_timeout_s: Seconds | None = None
    """As a queue's."""
    fair_share_preemption_timeout_s: Seconds | None = None
    """As a queue's."""
    fair_share_preemption_threshold: Fraction | None = None
    """As a queue's."""


class UserSpec(_Model):
    """Limits of one user."""

    max_running_apps: Apps


class RuleSpec(_Model):
    """One placement rule, and the rule that makes its parent queue."""

    rule: str
    """`specified`, `user`, `primaryGroup`, `secondaryGroupExistingQueue`, `nestedUserQueue`, `default` or `reject`."""
    create: StrictBool = True
    """Whether it may make a queue."""
    queue: StrictStr | None = None
    """The queue of `default`."""
    parent: RuleSpec | None = None
    """The rule that makes its parent queue."""


class ReservationSpec(_Model):
    """Class names of the reservation system."""

    planner: StrictStr | None = None
    agent: StrictStr | None = None
    policy: StrictStr | None = None


class RootSpec(_Model):
    """What can be said of the root queue; its preemption settings are the defaults."""

    min_resources: Amount | None = None
    max_resources: Limit | None = None
    max_child_resources: Limit | None = None
    max_container_allocation: Amount | None = None
    max_running_apps: Apps | None = None
    allow_preemption_from: StrictBool = True
    scheduling_policy: Literal["fair", "drf"] | None = None
    acl_submit_apps: StrictStr | None = None
    acl_administer_apps: StrictStr | None = None


class TreeSpec(_Model):
    """The whole file."""

    queues: dict[str, QueueEntry]
    root: RootSpec | None = None
    defaults: Defaults = Defaults()
    users: dict[str, UserSpec] = {}
    placement: list[RuleSpec] | None = None
    reservations: ReservationSpec = ReservationSpec()
