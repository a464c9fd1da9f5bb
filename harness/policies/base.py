"""The base of all policies: a policy is a pure function of a snapshot and a ledger, with settings.

A policy has no clock, no network and no randomness: the same snapshot and the same counted resources give the same
plan. Between calls it only keeps caches of the queue tree's shape, which do not change its results.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from fractions import Fraction
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, get_args

from harness.base.errors import CallError, InputError, nearest
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Attributes, LedgerSettings, Measure, Order, Plan
from harness.model.snapshot import QueueView, Snapshot
from harness.policies.user_file import defined_at

if TYPE_CHECKING:
    from harness.ledger.ledger import Ledger

#: Longer decimals are refused: nobody writes them, and exact arithmetic on them takes too long.
MAX_NUMBER_LENGTH = 64
_MAX_EXPONENT = 300


class LedgerView(Protocol):
    """What a policy can read of a ledger: the counted accumulated resources of every leaf."""

    def counted(self) -> Mapping[str, float]:
        """Return leaf path -> counted accumulated resources, in resource-seconds of the ledger's resource.

        The unit is MiB-seconds for ``memory``, vcore-seconds for ``vcores``, and seconds of the whole cluster for
        ``dominant``. A leaf that is missing has used nothing.
        """
        ...

    @property
    def start_s(self) -> float:
        """Start of the ledger on the snapshots' clock, seconds; earlier usage does not count."""
        ...


@dataclass(frozen=True, slots=True)
class CountedLedger:
    """A ledger's values at one instant, for callers that keep their own accounts."""

    by_leaf: Mapping[str, float] = field(default_factory=dict)
    #: Leaf -> its usage minus its due, in the same unit; empty if it is not counted.
    surplus: Mapping[str, float] = field(default_factory=dict)
    start_s: float = 0.0

    @classmethod
    def of(cls, ledger: Ledger) -> CountedLedger:
        """Copy a ledger's present values.

        Policies can use only those values of a ledger that are fields of this class.
        """
        return cls(ledger.counted(), ledger.surplus() if ledger.settings.count_due else {}, ledger.start_s)

    def counted(self) -> Mapping[str, float]:
        """Return the accumulated usage by leaf."""
        return self.by_leaf


@dataclass(frozen=True, slots=True)
class NoSettings:
    """Settings of policies that have none."""


def number(
    default: float | str | None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    infinite: bool = False,
    words: tuple[str, ...] = (),
    doc: str = "",
) -> Any:
    """Declare a field of a settings dataclass with a number in a range, or with one of ``words``."""
    meta = {"kind": "number", "min": at_least, "max": at_most, "above": above, "inf": infinite}
    return field(default=default, metadata={**meta, "words": words, "doc": doc})


def word(default: str, *words: str, doc: str = "") -> Any:
    """Declare a field of a settings dataclass with one of some words."""
    return field(default=default, metadata={"kind": "word", "words": words, "doc": doc})


def text(default: str, *, doc: str = "") -> Any:
    """Declare a field of a settings dataclass with any text, unchanged."""
    return field(default=default, metadata={"kind": "text", "words": (), "doc": doc})


def flag(default: bool = False, *, doc: str = "") -> Any:
    """Declare a boolean field of a settings dataclass."""
    return field(default=default, metadata={"kind": "flag", "words": ("true", "false"), "doc": doc})


class Policy(ABC):
    """A fairness policy; one `plan` serves inside the scheduler, on paper and from outside.

    Subclasses name themselves (``name``), declare their settings (``Settings``: a frozen dataclass whose fields are
    made by `number`, `word`, `text`, `flag`) and implement `plan`. A user's own policy may also define ``key`` (or
    ``keys``) and return ``Order(measure="keys")``. Each further capability of a policy has its own protocol
    (`harness.policies.capabilities`).
    """

    name: ClassVar[str] = ""
    Settings: ClassVar[type] = NoSettings
    #: Alternative names of settings (a paper's, a configuration file's) -> the field of ``Settings``.
    aliases: ClassVar[Mapping[str, str]] = {}
    #: Whether the policy makes up for a queue's earlier shortfalls, so that debts are shown to users.
    gives_back: ClassVar[bool] = False

    #: Whether a report page shows the first minutes of a run with this policy sample by sample, as LTYARN Fig. 6 does.
    #: Subclasses do not inherit it (`harness.policies.registry.has_detail_figure`).
    detail_figure: ClassVar[bool] = False

    #: Whether a leaf's due is its weight divided by the sum of all leaves' weights, regardless of the tree.
    ignores_tree: ClassVar[bool] = False

    #: The scheduler that the policy leaves unchanged (a stock policy), and the only one on which it runs. Subclasses do
    #: not inherit it (`harness.policies.registry.stock_scheduler`). None: it runs on any scheduler.
    stock_of: ClassVar[str | None] = None

    def __init__(self, settings: Any = None, exact: Mapping[str, Fraction] | None = None) -> None:
        #: The settings, an instance of ``Settings``.
        self.settings = self.Settings() if settings is None else settings
        #: Numeric settings as written, for exact arithmetic on paper. Includes defaults.
        self.exact: Mapping[str, Fraction] = {**_exact_defaults(self.settings), **(exact or {})}

    @abstractmethod
    def plan(self, snapshot: Snapshot, ledger: LedgerView) -> Plan:
        """Return the plan for a snapshot of the cluster and the usage so far. Pure.

        ``order`` is used inside the scheduler and on paper; ``weights`` and the other attributes are written to a stock
        scheduler. A call should take less than 100 microseconds for ten queues.
        """

    def dues_are_flat(self) -> bool:
        """Return `ignores_tree` for these settings: whether a leaf's due is its own weight relative to all leaves'."""
        return self.ignores_tree

    def check_outside(self) -> None:  # noqa: B027 (most policies have nothing to refuse)
        """Raise CallError for a setting that has no effect from outside."""

    def ledger_settings(self) -> LedgerSettings | None:
        """Return the fixed settings of the policy's ledger. None: they depend on the order of its plan."""
        return None

    def keys(self, snapshot: Snapshot, ledger: LedgerView) -> Mapping[str, float]:
        """Return the keys by which queues are ordered, with ``Order(measure="keys")``.

        The result maps queue paths to keys. The demanding queue with the smallest key gets the next container; ties are
        broken by name. A missing queue comes last. The default calls `key` for each queue below root.
        """
        counted = ledger.counted()
        below = dict.fromkeys(snapshot.queues, 0.0)
        for name, queue in snapshot.queues.items():
            if queue.leaf:
                amount = counted.get(name, 0.0)
                below[name], above = amount, queue.parent
                while above is not None:
                    below[above] += amount
                    above = snapshot.queues[above].parent
        return {
            name: self.key(queue, below[name], snapshot)
            for name, queue in snapshot.queues.items()
            if queue.parent is not None
        }

    def key(self, queue: QueueView, counted: float, snapshot: Snapshot) -> float:
        """Return the key of a leaf or parent queue; the default `keys` calls this with ``Order(measure="keys")``.

        ``counted``: the queue's counted accumulated resources, resource-seconds; for a parent, the sum of its leaves'.
        """
        raise InputError(
            f"policy {self.name} answers Order(measure='keys') but defines neither key() nor keys()",
            where=defined_at(type(self), "plan"),
            hint="define key(self, queue, counted, snapshot), which returns a number",
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings!r})"


def checked_plan(policy: Policy, snapshot: Snapshot, ledger: LedgerView) -> Plan:
    """Return a policy's plan, and raise an error for an invalid plan.

    Parameters
    ----------
    policy
        A policy, possibly a user's.
    snapshot, ledger
        The arguments of `Policy.plan`.

    Returns
    -------
    Plan
        The result of `Policy.plan`.

    Raises
    ------
    InputError
        The result is not a Plan, its order is invalid, it names an unknown queue, or it has an invalid weight. Without
        this check, such a plan would silently lead to the stock order or to wrong shares.
    """
    plan: Any = policy.plan(snapshot, ledger)
    problem = _problem(plan, snapshot)
    if problem:
        raise InputError(
            f"policy {policy.name}: {problem}",
            where=defined_at(type(policy), "plan"),
            hint="return a harness.model.plan.Plan; docs/how-to/write-a-policy.md shows one",
        )
    checked: Plan = plan
    return checked


#: The attributes of a plan that are written to a scheduler, each by queue.
_ATTRIBUTES = tuple(one.name for one in fields(Attributes))


def _problem(plan: Any, snapshot: Snapshot) -> str:
    """Describe the error in a result of ``plan()`` ('': it is valid)."""
    if not isinstance(plan, Plan):
        return f"plan() returns {_short(plan)}, which is not a Plan"
    if not isinstance(plan.order, Order):
        return f"its plan's order is {_short(plan.order)}, which is not an Order"
    for name in (*_ATTRIBUTES, "reasons"):
        if not isinstance(getattr(plan, name), Mapping):
            return f"its plan's {name} is {_short(getattr(plan, name))}, which is not a mapping of queues' names"
    measures = get_args(Measure)
    if plan.order.measure not in measures:
        return f"Order(measure={_short(plan.order.measure)}) is not one of {', '.join(measures)}"
    for queue in chain(plan.weights, *plan.all_but_weights):
        if queue not in snapshot.queues:
            return f"its plan names {_short(queue)}, which is not a queue"
    for queue, weight in plan.weights.items():
        # The administrator's own weight may be outside the range (0, for example), and a policy may keep it.
        own = weight == snapshot.queues[queue].weight
        # `bool` is a subclass of int. Do not convert to float, because an integer may be too large for that.
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not (number and (own or WEIGHT_MIN <= weight <= WEIGHT_MAX)):
            return f"weight {_short(weight)} of {queue} is not within [{WEIGHT_MIN:g}, {WEIGHT_MAX:g}]"
    return ""


def checked_keys(policy: Policy, snapshot: Snapshot, ledger: LedgerView, flat: bool) -> Mapping[str, Any]:
    """Return a policy's keys of its queues, and refuse values that are not numbers.

    Parameters
    ----------
    policy
        A policy whose plan has ``Order(measure="keys")``.
    snapshot, ledger
        The arguments of `Policy.keys`.
    flat
        Whether only leaves are compared, so that keys of parents have no meaning.

    Returns
    -------
    Mapping[str, Any]
        Queue path -> numeric key of the compared queues. A missing queue comes last.

    Raises
    ------
    InputError
        A key is None, NaN or not a number. Without this check, its queue would silently come last and starve.
    """
    keys = policy.keys(snapshot, ledger)
    if not isinstance(keys, Mapping):
        cls = type(policy)
        raise InputError(
            f"policy {policy.name}: keys() returns {_short(keys)}, not a mapping of queues' names to numbers",
            where=defined_at(cls, "keys"),
            hint="return a dict: queue -> number",
        )
    checked = {}
    for queue, key in keys.items():
        view = snapshot.queues.get(queue)
        if view is not None and (view.leaf or not flat):
            if not (isinstance(key, float | int | Real) and key == key):
                raise _wrong_key(policy, queue, key)
            checked[queue] = key
    return checked


def _wrong_key(policy: Policy, queue: str, key: Any) -> InputError:
    cls = type(policy)
    method = "key" if cls.keys is Policy.keys else "keys"
    return InputError(
        f"policy {policy.name}: {method}() returns {_short(key)} for {queue}, which is not a number",
        where=defined_at(cls, method),
        hint="return a number for each queue; float('inf') puts a queue last",
    )


def _short(value: Any) -> str:
    try:
        shown = repr(value)
    except ValueError:
        # Python refuses to convert an integer of more than 4,300 digits to text.
        return f"an integer of {value.bit_length():,} bits" if isinstance(value, int) else f"a {type(value).__name__}"
    return shown if len(shown) <= 60 else shown[:57] + "..."


def describe_settings(cls: type[Policy]) -> dict[str, str]:
    """Return setting -> text about its values, default and meaning, for help, errors and the reference."""
    described = {}
    for entry in fields(cls.Settings):
        meta, default = entry.metadata, entry.default
        shown = "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
        described[entry.name] = f"{_takes(entry)}, default {shown}" + (f": {meta['doc']}" if meta.get("doc") else "")
    return described


def parse_settings(cls: type[Policy], given: Mapping[str, Any]) -> tuple[Any, dict[str, Fraction]]:
    """Return a policy class's settings object and its exact numbers, from text or numbers that a user wrote.

    Raises CallError for an unknown setting, a wrong type, NaN, or a value out of range.
    """
    known: dict[str, Field[Any]] = {entry.name: entry for entry in fields(cls.Settings)}
    values: dict[str, Any] = {}
    exact: dict[str, Fraction] = {}
    for written, raw in given.items():
        name = cls.aliases.get(written, written)
        if name not in known:
            offer = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            if close := nearest(str(written), [*known, *cls.aliases]):
                offer = f"did you mean {close!r}? {offer}"
            raise CallError(f"policy {cls.name} has no setting {str(written)[:60]!r}", where="--set", hint=offer)
        if name in values:
            raise CallError(f"setting {name} of policy {cls.name} is given under two names", hint="give it once")
        values[name] = _parse_value(cls.name, known[name], raw)
        value = values[name]
        if known[name].metadata["kind"] == "number" and isinstance(value, float) and math.isfinite(value):
            exact[name] = read_decimal(raw) or Fraction(0)
    return cls.Settings(**values), exact


def read_decimal(raw: Any) -> Fraction | None:
    """Parse a finite decimal number exactly; a float stands for its printed digits. None for anything else."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int | Fraction):
        return Fraction(raw) if abs(raw) < 10**_MAX_EXPONENT else None
    text = str(raw).strip()
    if not text or len(text) > MAX_NUMBER_LENGTH or "/" in text or "_" in text or not text.isascii():
        return None
    exponent = text.lower().partition("e")[2]
    try:
        if exponent and abs(int(exponent)) > _MAX_EXPONENT:
            return None
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _parse_value(policy: str, entry: Field[Any], raw: Any) -> Any:
    meta = entry.metadata

    def wrong() -> CallError:
        shown = str(raw)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        return CallError(
            f"setting {entry.name}={shown} of policy {policy} is not {_takes(entry)}",
            where="--set",
            hint=f"for example {entry.name}={_example(entry)}",
        )

    if meta["kind"] == "text":
        return str(raw).strip()
    text = str(raw).strip().lower()
    if meta["kind"] == "flag":
        if text not in ("true", "false", "yes", "no", "1", "0", "on", "off"):
            raise wrong()
        return text in ("true", "yes", "1", "on")
    if text in meta["words"]:
        return text
    if meta["kind"] == "word":
        raise wrong()
    if text in ("inf", "+inf", "infinity", ".inf", "+.inf") and meta["inf"]:
        return math.inf
    value = read_decimal(raw)
    if value is None:
        raise wrong()
    low, high, above = meta["min"], meta["max"], meta["above"]
    if (
        (low is not None and value < low)
        or (high is not None and value > high)
        or (above is not None and value <= above)
    ):
        raise wrong()
    return float(value)


def _takes(entry: Field[Any]) -> str:
    meta = entry.metadata
    if meta["kind"] == "text":
        return "a text"
    if meta["kind"] != "number":
        return " or ".join(meta["words"])
    bounds = []
    if meta["above"] is not None:
        bounds.append(f"above {meta['above']:g}")
    if meta["min"] is not None:
        bounds.append(f"at least {meta['min']:g}")
    if meta["max"] is not None:
        bounds.append(f"at most {meta['max']:g}")
    text = "a number" + (" " + " and ".join(bounds) if bounds else "")
    if meta["inf"]:
        text += ", or inf"
    return text + "".join(f", or {extra}" for extra in meta["words"])


def _example(entry: Field[Any]) -> str:
    default = entry.default
    if default is MISSING or default is None:
        return "60"
    return (
        str(default).lower()
        if isinstance(default, bool)
        else f"{default:g}"
        if isinstance(default, float)
        else str(default)
    )


def _exact_defaults(settings: Any) -> dict[str, Fraction]:
    found = {}
    for entry in fields(settings):
        value = getattr(settings, entry.name)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            found[entry.name] = Fraction(str(value))
    return found
