"""Schema of a user's queue tree (YAML), from which docs/reference/allocation-file.md is generated.

Values that the ResourceManager would accept but interpret differently are refused.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN
from harness.model.queues import BAD_IN_NAME, JAVA_INT_MAX, JAVA_LONG_MAX, ROOT, ResourceLimit
from harness.model.resources import Resource
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.parse import PLACEMENT_RULES

S = TypeVar("S", bound="QueueEntry | RootSpec")

BAD_NAME = re.compile(f"[{BAD_IN_NAME}]")
#: Characters that a text may not contain (XML cannot represent them, or does not preserve them).
BAD_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")


class Wrong(ValueError):
    """A mistake in a value, with a hint and the key below the present one."""

    def __init__(self, what: str, hint: str, *at: str) -> None:
        super().__init__(what)
        self.hint, self.at = hint, at


def _weight(weight: float) -> float:
    # 0 is a documented weight. The comparison also refuses NaN and integers that are too large for a float.
    if weight != 0 and not WEIGHT_MIN <= weight <= WEIGHT_MAX:
        raise Wrong(f"weight {weight!r} is not between {WEIGHT_MIN:g} and {WEIGHT_MAX:g}", "scale the weights")
    return float32(weight)


def _am_share(share: float, info: ValidationInfo) -> float:
    if not (0 <= share <= 1 or share == -1):
        raise Wrong(f"{info.field_name} {share!r} is not between 0 and 1", "write -1 for no limit")
    return float32(share)


def _of_one_kind(limit: Limit, info: ValidationInfo) -> Limit:
    percent = limit.memory_percent is not None or limit.vcores_percent is not None
    absolute = limit.memory_mb is not None or limit.vcores is not None
    if percent and absolute:
        raise Wrong(f"{info.field_name} mixes amounts and percentages", "use one of the two")
    if not percent and not absolute:
        raise Wrong(f"{info.field_name} says nothing", "write memory_mb, vcores or percentages, or remove it")
    return limit


def _text(kind: str, name: str | None = None) -> AfterValidator:
    """Check a text that XML can represent.

    ``kind``: description of the text in messages. ``name``: its name, if it is not the value of a key.
    """

    def check(text: str, info: ValidationInfo) -> str:
        if not text or BAD_TEXT.search(text):
            raise Wrong(f"{name or info.field_name} is empty or contains control characters", f"write {kind}")
        return text

    return AfterValidator(check)


def _queue_name(name: str) -> str:
    # A space inside a name is kept; the RM trims surrounding spaces.
    if bad := BAD_NAME.search(name.replace(" ", "") if name == name.strip() else name):
        what = "a dot" if bad[0] == "." else "white space" if bad[0].isspace() else repr(bad[0])
        raise Wrong(f"queue name {name!r} contains {what}", "rename it (nest queues under 'children')")
    if not name or len(name) > 255:
        raise Wrong("a queue name is empty or longer than 255 characters", "rename it")
    if name.lower() == ROOT:
        raise Wrong(f"queue name {name!r} is reserved", "say it under the top-level key 'root'")
    return name


def _minimum_fits(spec: S) -> S:
    minimum, limit = spec.min_resources, spec.max_resources
    if (
        minimum is not None
        and limit is not None
        and (maximum := limit.limit().absolute) is not None
        and not minimum.least().fits_in(maximum)
    ):
        raise Wrong(
            "min_resources is greater than max_resources (the ResourceManager raises the maximum)",
            "lower the minimum or raise the maximum",
            "min_resources",
        )
    return spec


Number = StrictInt | StrictFloat
Memory = Annotated[StrictInt, Field(ge=0, le=JAVA_LONG_MAX)]
Vcores = Annotated[StrictInt, Field(ge=0, le=JAVA_INT_MAX)]
Percent = Annotated[Number, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Apps = Annotated[StrictInt, Field(ge=0, le=JAVA_INT_MAX)]
Seconds = Annotated[StrictInt, Field(ge=0, le=10**12)]
Fraction = Annotated[Number, Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(float32)]
Policy = Literal["fair", "drf", "fifo"]
Weight = Annotated[Number, AfterValidator(_weight)]
AmShare = Annotated[Number, AfterValidator(_am_share)]
Acl = Annotated[StrictStr, _text("users and groups ('alice,bob admins'; ' ' for nobody)")]
ClassName = Annotated[StrictStr, _text("a class name")]
UserName = Annotated[str, _text("a user name", "a name under 'users'")]
QueueName = Annotated[str, AfterValidator(_queue_name)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Amount(_Model):
    """An absolute amount. An omitted resource is 0 in a minimum and unlimited in a maximum."""

    memory_mb: Memory | None = None
    vcores: Vcores | None = None

    def least(self) -> Resource:
        """Return the amount as a minimum."""
        return Resource(self.memory_mb or 0, self.vcores or 0)

    def most(self) -> Resource:
        """Return the amount as a maximum with both resources.

        Hadoop would interpret a missing number of vcores as -1.
        """
        memory_mb = JAVA_LONG_MAX if self.memory_mb is None else self.memory_mb
        return Resource(memory_mb, JAVA_INT_MAX if self.vcores is None else self.vcores)


class Limit(Amount):
    """A maximum: an amount, or percentages of the cluster (omitted: 100)."""

    memory_percent: Percent | None = None
    vcores_percent: Percent | None = None

    def limit(self) -> ResourceLimit:
        """Return the limit in a queue's settings."""
        if self.memory_percent is None and self.vcores_percent is None:
            return ResourceLimit(self.most())
        memory, vcores = (100 if one is None else one for one in (self.memory_percent, self.vcores_percent))
        return ResourceLimit(None, float(memory) / 100.0, float(vcores) / 100.0)


Maximum = Annotated[Limit, AfterValidator(_of_one_kind)]


class QueueEntry(_Model):
    """One queue."""

    weight: Weight | None = None
    """Share relative to the siblings: 0, or 0.001 to 1000000; 1 if omitted. `weight`."""
    min_resources: Amount | None = None
    """Minimum share, `{memory_mb, vcores}`; an omitted component is 0. `minResources`."""
    max_resources: Maximum | None = None
    """Maximum share, `{memory_mb, vcores}` or `{memory_percent, vcores_percent}`; an omitted component is unlimited
    (100 %). If the key is omitted, the default applies. `maxResources`."""
    max_child_resources: Maximum | None = None
    """Maximum share of the queue's ad hoc children, in the same form. `maxChildResources`."""
    max_container_allocation: Amount | None = None
    """Largest container, `{memory_mb, vcores}`; the parent's if omitted. `maxContainerAllocation`."""
    max_running_apps: Apps | None = None
    """Largest number of running applications; the default if omitted. `maxRunningApps`."""
    max_am_share: AmShare | None = None
    """Fraction of the fair share that AMs may use, 0 to 1 (-1: no limit); leaves only; the default if omitted.
    `maxAMShare`."""
    min_share_preemption_timeout_s: Seconds | None = None
    """Timeout below the minimum share, seconds; the parent's if omitted. `minSharePreemptionTimeout`."""
    fair_share_preemption_timeout_s: Seconds | None = None
    """Timeout below the fair share, seconds; the parent's if omitted. `fairSharePreemptionTimeout`."""
    fair_share_preemption_threshold: Fraction | None = None
    """Fraction of the fair share below which the queue starves, 0 to 1; the parent's if omitted.
    `fairSharePreemptionThreshold`."""
    allow_preemption_from: StrictBool = True
    """Whether the queue's containers may be preempted; false if it is false for the parent. `allowPreemptionFrom`."""
    scheduling_policy: Policy | None = None
    """`fair`, `drf` or `fifo`; the default if omitted. `schedulingPolicy`."""
    acl_submit_apps: Acl | None = None
    """`"users groups"`, each separated by commas; nobody if omitted (`root`: everybody). `aclSubmitApps`."""
    acl_administer_apps: Acl | None = None
    """In the form of `acl_submit_apps`. `aclAdministerApps`."""
    acl_administer_reservations: Acl | None = None
    """In the form of `acl_submit_apps`. `aclAdministerReservations`."""
    acl_list_reservations: Acl | None = None
    """In the form of `acl_submit_apps`. `aclListReservations`."""
    acl_submit_reservations: Acl | None = None
    """In the form of `acl_submit_apps`. `aclSubmitReservations`."""
    reservation: StrictBool = False
    """Whether the queue can be reserved; leaves only. `reservation`."""
    children: dict[QueueName, QueueEntry] | None = None
    """Name -> queue. With this key, even if it is empty, the queue is a parent. `queue`."""

    _fits = model_validator(mode="after")(_minimum_fits)

    @model_validator(mode="after")
    def _parent_or_leaf(self) -> Self:
        if self.children is not None:
            for key, said in (("max_am_share", self.max_am_share is not None), ("reservation", self.reservation)):
                if said:
                    raise Wrong(f"a parent cannot have {key}", "give it to a leaf", key)
        return self


class Defaults(_Model):
    """Defaults for queues and users that do not set these values."""

    scheduling_policy: Literal["fair", "drf"] = "fair"
    """Scheduling policy of queues: `fair` or `drf`."""
    user_max_apps: Apps | None = None
    """Largest number of running applications of a user."""
    queue_max_apps: Apps | None = None
    """Largest number of running applications of a queue."""
    queue_max_resources: Maximum | None = None
    """Default of a queue's `max_resources`."""
    queue_max_am_share: AmShare | None = None
    """Default of a queue's `max_am_share`."""
    min_share_preemption_timeout_s: Seconds | None = None
    """Default of a queue's `min_share_preemption_timeout_s`."""
    fair_share_preemption_timeout_s: Seconds | None = None
    """Default of a queue's `fair_share_preemption_timeout_s`."""
    fair_share_preemption_threshold: Fraction | None = None
    """Default of a queue's `fair_share_preemption_threshold`."""


class UserSpec(_Model):
    """Limits of one user."""

    max_running_apps: Apps


class RuleSpec(_Model):
    """One placement rule, and the rule that creates its parent queue."""

    rule: str
    """`specified`, `user`, `primaryGroup`, `secondaryGroupExistingQueue`, `nestedUserQueue`, `default` or `reject`."""
    create: StrictBool = True
    """Whether the rule may create a queue."""
    queue: StrictStr | None = None
    """The queue of the rule `default`."""
    parent: RuleSpec | None = None
    """The rule that creates the parent queue."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.rule not in PLACEMENT_RULES:
            known = ", ".join(sorted(PLACEMENT_RULES))
            raise Wrong(f"no placement rule is called {self.rule!r}", f"use one of {known}", "rule")
        if self.queue is not None:
            if self.rule != "default":
                raise Wrong(f"rule {self.rule!r} takes no queue", "only 'default' does", "queue")
            if any(not part or BAD_NAME.search(part) for part in self.queue.split(".")):
                raise Wrong(f"{self.queue!r} is not a queue", "write a path like root.a", "queue")
        return self


class ReservationSpec(_Model):
    """Class names of the reservation system."""

    planner: ClassName | None = None
    agent: ClassName | None = None
    policy: ClassName | None = None


class RootSpec(_Model):
    """Settings of the root queue; its preemption settings are the defaults of all queues."""

    min_resources: Amount | None = None
    max_resources: Maximum | None = None
    max_child_resources: Maximum | None = None
    max_container_allocation: Amount | None = None
    max_running_apps: Apps | None = None
    allow_preemption_from: StrictBool = True
    scheduling_policy: Literal["fair", "drf"] | None = None
    acl_submit_apps: Acl | None = None
    acl_administer_apps: Acl | None = None

    _fits = model_validator(mode="after")(_minimum_fits)


class TreeSpec(_Model):
    """The whole file."""

    queues: dict[QueueName, QueueEntry]
    root: RootSpec | None = None
    defaults: Defaults = Defaults()
    users: dict[UserName, UserSpec] = {}
    placement: list[RuleSpec] | None = None
    reservations: ReservationSpec = ReservationSpec()

    @field_validator("queues", "placement")
    @classmethod
    def _not_empty(cls, value: object) -> Any:
        if value == {}:
            raise Wrong("there are no queues", "name at least one under 'queues'")
        if value == []:
            raise Wrong("placement has no rules", "write rules, or remove it")
        return value
