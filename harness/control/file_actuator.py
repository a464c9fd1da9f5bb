"""The actuator of the Fair Scheduler: manages attributes in an allocation file and leaves all others alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.base.errors import InputError
from harness.control.actuator import BaseActuator, Prepared
from harness.control.gate import lines_of, refused, unlike
from harness.control.known_traps import KnownTraps
from harness.control.ownership import Drift
from harness.control.values import (
    ATTRIBUTES,
    Values,
    checked_managed,
    checked_texts,
    checked_values,
    entitlement,
    finite,
    is_round,
    limit_of,
    remember_named,
    resource_of,
    values_of,
)
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, Attributes, ResourceName, hadoop_policy
from harness.model.queues import ROOT, AllocationFile, QueuePolicy
from harness.model.resources import Resource
from harness.policies.weights import GRID_MIN, LEVEL_SUM, WEIGHT_BITS, grid_weight
from harness.yarn.capacity.traps import Trap, fair_traps
from harness.yarn.fair.edit import Attribute, Change, Edited, close_empty, edit_parsed
from harness.yarn.fair.grow import NewQueue, add_queues, remove_queues
from harness.yarn.fair.javanum import float32
from harness.yarn.fair.manager import is_child_policy_allowed, queue_tree
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.resources import resource_text
from harness.yarn.files import ConfigStore, always
from harness.yarn.findings import Finding
from harness.yarn.rmclient import RmClient
from harness.yarn.validation import check_document

#: A queue that the controller has named is removed from the file after this long without applications, seconds.
IDLE_S = 60.0
#: Part of a message: when the ResourceManager reads the file without a refresh.
LOADED_BY_POLL = "when the ResourceManager looks at the file next (10 to 20 s)"
#: Weights of siblings that sum to `LEVEL_SUM` still belong to an administrator if the changed weights are multiples of
#: `_ROUND_PART`. With more siblings than `_FEW`, a controller never gives round weights to all of them.
_ROUND_PART, _FEW = 50.0, 10
#: Key of `FileActuator.texts`, beside the attributes.
OPENED = "element"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFile(Prepared):
    """An allocation file that is ready to be written. ``says``: its content as a ResourceManager parses it."""

    says: AllocationFile


@dataclass(slots=True)
class FileActuator(BaseActuator):
    """One allocation file with its baseline and managed values.

    ``departed`` also holds the weights of ad hoc queues that the controller has added to the file, even while these
    exist, so that an older copy of the file is recognised.
    """

    store: ConfigStore
    #: Ad hoc queues that the controller has named in the file -> last time that they had applications.
    named: dict[str, float] = field(default_factory=dict)
    #: Queue -> attribute -> the administrator's original text between the tags, byte for byte (as latin-1; None: no
    #: such element). `OPENED`: the queue's element was an empty tag.
    texts: dict[str, dict[str, str | None]] = field(default_factory=dict)
    PARTS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "baseline": checked_values,
        "ours": checked_managed,
        "named": float,
        "texts": checked_texts,
    }
    ATTRIBUTES: ClassVar[tuple[str, ...]] = ATTRIBUTES
    SHARE: ClassVar[str] = "weight"
    ABSENT: ClassVar[Any] = 1.0
    scheduler: ClassVar[str] = ""
    values_name: ClassVar[str] = "weights and limits"
    load_validates: ClassVar[bool] = False
    loaded_otherwise: ClassVar[str] = LOADED_BY_POLL
    _traps: KnownTraps = field(default_factory=KnownTraps, init=False)
    _data: bytes = field(default=b"", init=False)
    _file: AllocationFile = field(default_factory=AllocationFile, init=False)
    _names: frozenset[str] = field(default=frozenset(), init=False)
    #: The file with newly named ad hoc queues, not written yet. `_leaving`: named queues that it no longer contains.
    _drafted: bytes | None = field(default=None, init=False)
    _leaving: set[str] = field(default_factory=set, init=False)

    def _read(self, *, words_lost: bool) -> list[Drift]:
        data = self.store.read()
        if data == self._data and self._drafted is None:
            return []
        file = parse_allocations(data, source=self.store.name)
        names = frozenset((*file.configured_leaves, *file.configured_parents))
        # In the order of the previous file, as far as it is known.
        known_before = dict.fromkeys((*self._file.configured_leaves, *self._file.configured_parents, *self.baseline))
        found: list[Drift] = []
        self._data, self._file, self._names, self._drafted = data, file, names, None
        self._traps.forget()
        self._leaving.clear()
        # The root stays in the baseline, so that `dangers` knows that the file once had an element for it.
        gone = [path for path in known_before if path in self.baseline and path not in names and path != ROOT]
        for path in gone:
            self._depart(path)
        older = any(
            values_of(file.settings.get(path))["weight"] not in managed.get("weight", [])
            for path, managed in self.managed.items()
            if path in names and managed.get("weight")
        )
        stands = _present_values(file, dict.fromkeys((*file.configured_leaves, *file.configured_parents)))
        chosen = set() if words_lost else self._chosen_since_return(stands)
        for path in sorted(names):
            present = values_of(file.settings.get(path))
            if path not in self.baseline and self._come_back(path, present, older):
                # The queue reappeared with the weight that it had when it was removed.
                found.append(Drift(path, "weight", str(present["weight"])))
            found += self._reclaim(path, present, chosen)
        found += self._newcomers(stands, gone)
        for path in sorted(names):
            present = stands[path]
            known = self.baseline.setdefault(path, {"weight": present["weight"]})
            if words_lost and not self.managed.get(path, {}).get("weight") and present["weight"] != known["weight"]:
                # A difference from the entitlement is reported as drift below.
                self.managed.setdefault(path, {})["weight"] = [known["weight"]]
        for edit in self._merge(stands, words_lost=words_lost):
            found.append(edit)
            if stands[edit.queue][edit.attribute] == self.baseline[edit.queue].get(edit.attribute):
                self.texts.get(edit.queue, {}).pop(edit.attribute, None)
        self._take_texts(stands)
        return found

    def _take_texts(self, stands: Mapping[str, Values]) -> None:
        """Remember the present texts of the administrator's values that are in the file just now.

        A controller restores these texts, so a different text of the same value (2.00 instead of 2) is a later edit by
        the administrator.
        """
        here: dict[str, Values] = {}
        for path in self.texts.keys() & stands.keys():
            known = self.baseline.get(path, {})
            for attribute, text in self.texts[path].items():
                value = known.get(attribute)
                if text is None or value is None or stands[path].get(attribute) != value:
                    continue
                # A weight that would break a ResourceManager is not restored unchanged.
                if attribute != "weight" or finite(value) == value:
                    here.setdefault(path, {})[attribute] = value
        if not here:
            return
        edited = edit_parsed(self._data, self._file, self._changes(here.items()), source=self.store.name)
        for path, was in edited.was.items():
            for attribute, stood in was.items():
                self.texts[path][attribute] = stood

    def dangers(self) -> tuple[str, ...]:
        """Describe content of the file, as of the last `read`, that may crash a ResourceManager.

        The danger lasts until the administrator corrects the file.
        """
        if ROOT not in self.baseline or ROOT in self._names or not self._data:
            return ()
        return (
            'the file no longer has the element <queue name="root"> that it had: a ResourceManager that reads it may '
            "delete its root queue and end, so write the element again soon",
        )

    def _texts(self, path: str) -> dict[str, str | None]:
        return self.texts.setdefault(path, {})

    def _stands(self) -> dict[str, Values]:
        return _present_values(parse_allocations(self.store.read(), source=self.store.name))

    def _look_anew(self) -> None:
        self._data, self._drafted = b"", None

    def _depart(self, path: str) -> None:
        if path in self.named:
            self._forget(path)
        else:
            BaseActuator._depart(self, path)

    def _come_back(self, path: str, present: Values, older: bool) -> bool:
        """Restore the entitlement of a queue that reappears with a managed weight; return whether it had one.

        A queue that the controller had named is managed again, unless its weight is a round number, which a person may
        have written, and the file has no other weight from an older copy (``older``).
        """
        named = "named" in self.departed.get(path, {})
        if named and not older and is_round(present["weight"]):
            return False
        kept = self._returned(path, present["weight"])
        if kept is None:
            return False
        if named:
            self.departed[path], self.named[path] = kept, kept["named"]
            self.baseline[path], self.managed[path] = {"weight": None}, {"weight": [present["weight"]]}
        else:
            self.texts[path] = kept.get("texts", {})
        return True

    def counted_resource(self) -> ResourceName:
        """Return ``dominant`` if the administrator's scheduling policy of every queue is drf."""
        file = parse_allocations(self.store.read(), source=self.store.name)
        own = {path: file.scheduling_policy(path) for path in (ROOT, *file.configured_leaves, *file.configured_parents)}
        own |= {path: policy for path, policy in self._own_policies(file).items() if path in own}
        return "dominant" if set(own.values()) == {"drf"} else "memory"

    def configured_weights(self) -> dict[str, float]:
        """Return the administrator's weights of all queues in the file."""
        return {path: entitlement(values["weight"]) for path, values in self.baseline.items()}

    def min_shares(self) -> dict[str, Resource]:
        """Return the administrator's minimum shares of queues whose minimum the controller has written."""
        return {
            path: resource_of(values["min_resources"])
            for path, values in self.baseline.items()
            if "min_resources" in values
        }

    def max_shares(self, capacity: Resource) -> dict[str, Resource]:
        """Return the administrator's maximum shares of queues whose maximum or minimum the controller has written.

        A minimum matters because the ResourceManager shows a maximum raised to the minimum share in force.
        """
        default = self._file.queue_max_resources_default
        found = {}
        for path, values in self.baseline.items():
            if "max_resources" in values:
                limit = limit_of(values["max_resources"]) or default
                found[path] = limit.resolve(capacity)
            elif "min_resources" in values:
                found[path] = self._file.max_resources(path).resolve(capacity)
        return found

    def name_queues(self, leaves: Mapping[str, bool], now_s: float) -> None:
        """Add busy ad hoc queues to the file that `prepare` starts from, and remove idle ones.

        ``leaves``: leaf queues of the RM -> whether they are busy. Nothing is written yet. Raises InputError if the
        file cannot contain them; the state is unchanged then.
        """
        file, names = self._file, self._names
        new: dict[str, NewQueue] = {}
        for path, busy in leaves.items():
            if path in self.named and busy:
                self.named[path] = now_s
            if path in names or not busy:
                continue
            above = path
            while (above := above.rpartition(".")[0]) != ROOT and above not in names:
                new[above] = NewQueue(leaf=False, elements=_child_limit(file, above))
            new[path] = NewQueue(leaf=True, elements=_child_limit(file, path))
        old = {path for path, seen_s in self.named.items() if path in names and now_s - seen_s > IDLE_S}
        old -= {path for path in old if any(other.startswith(path + ".") for other in {*new, *self.named.keys() - old})}
        if not new and not old:
            return
        data = self._base()
        gone: set[str] = set()
        if old:
            data, file, gone = remove_queues(data, old, source=self.store.name)
        if new:
            grown = add_queues(data, new, source=self.store.name)
            data, file = grown.document, grown.says
            self._remember(grown)
        for path in old:
            if path in gone:
                self._leaving.add(path)
            else:
                # Somebody else has added settings to the queue's element, so the queue now belongs to the
                # administrator.
                self.named.pop(path)
                if "named" in self.departed.get(path, {}):
                    del self.departed[path]
        for path in new:
            self.named[path] = now_s
            self.baseline[path] = {"weight": None}
        self._drafted, self._file = data, file
        self._traps.forget()
        self._names = frozenset((*file.configured_leaves, *file.configured_parents))

    def shift(self, seconds: float) -> None:
        """Like `BaseActuator.shift`, including the times at which named queues last had applications."""
        BaseActuator.shift(self, seconds)
        self.named = {path: seen_s + seconds for path, seen_s in self.named.items()}

    def _base(self) -> bytes:
        """Return the document from which a new file is made: the last one read, with newly named queues."""
        return self._data if self._drafted is None else self._drafted

    def prepare(self, attributes: Attributes) -> PreparedFile:
        """Prepare the file with these attributes, based on the last `read`. InputError if the file cannot hold them.

        ``managed`` and ``baseline`` then include the values to be written; store both before writing the file.
        """
        self.generation += 1
        file, names, problems = self._file, self._names, []
        wanted: dict[str, Values] = {}
        weights, ad_hoc = _scaled(attributes.weights, names)
        for path, weight in weights.items():
            wanted.setdefault(path, {})["weight"] = weight
        for path, least in attributes.min_shares.items():
            wanted.setdefault(path, {})["min_resources"] = [least.memory_mb, least.vcores]
        for path, most in attributes.max_shares.items():
            wanted.setdefault(path, {})["max_resources"] = [most.memory_mb, most.vcores]
        if attributes.scheduling_policies:
            inside = {
                path: own for path, policy in attributes.scheduling_policies.items() if (own := hadoop_policy(policy))
            }
            policies, unfit = _fitting_policies(file, names, inside, self._own_policies(file))
            problems += unfit
            for path, policy in policies.items():
                # A queue that has the policy already, by its own element or by default, needs no element.
                if policy != file.scheduling_policy(path) or "scheduling_policy" in self.managed.get(path, {}):
                    wanted.setdefault(path, {})["scheduling_policy"] = policy
        for path in [path for path in wanted if path not in names]:
            if any(value is not None for key, value in wanted.pop(path).items() if key != "weight"):
                problems.append(f"{path} is not in the file: its limits cannot be set")
        changes = self._changes(self._due(wanted, _present_values(self._file, self._names)))
        edited = edit_parsed(self._base(), self._file, changes, source=self.store.name)
        self._remember(edited)
        for path in self.named.keys() & wanted.keys():
            remember_named(self.departed, path, self.named[path], wanted[path].get("weight"))
        in_force = {path: float32(values["weight"]) for path, values in wanted.items() if "weight" in values}
        return PreparedFile(self._data, edited.document, in_force, ad_hoc, tuple(problems), says=edited.says)

    def _own_policies(self, file: AllocationFile) -> dict[str, QueuePolicy]:
        """Return the administrator's scheduling policies of the queues whose policy the controller has written."""
        return {
            path: self.baseline.get(path, {}).get("scheduling_policy") or file.default_scheduling_policy
            for path, managed in self.managed.items()
            if "scheduling_policy" in managed
        }

    def original(self) -> PreparedFile:
        """Prepare the administrator's file, byte-identical to the original unless somebody has edited it since."""
        changes = self._changes(self._due({}, _present_values(self._file, self._names)))
        edited = edit_parsed(self._data, self._file, changes, source=self.store.name)
        after, says = edited.document, edited.says
        if self.named:
            after, says, _ = remove_queues(after, list(self.named), source=self.store.name)
        after = close_empty(after, [p for p, t in self.texts.items() if OPENED in t], source=self.store.name)
        stays = {*says.configured_leaves, *says.configured_parents}
        weights = {path: float32(says.weight(path)) for path in stays if path in self.baseline}
        # A NaN of the administrator's never equals the value that the ResourceManager shows.
        in_force = {path: weight for path, weight in weights.items() if weight == weight}
        return PreparedFile(self._data, after, in_force, says=says)

    def _remember(self, edited: Edited) -> None:
        """Remember the administrator's original texts when they are replaced for the first time."""
        for path, was in edited.was.items():
            texts, present = self.texts.setdefault(path, {}), values_of(self._file.settings.get(path))
            for attribute, text in was.items():
                # A text that somebody else has written since is not the administrator's original.
                if present[attribute] == self.baseline.get(path, {}).get(attribute):
                    texts.setdefault(attribute, text)
        for path in edited.opened:
            self.texts.setdefault(path, {})[OPENED] = None

    def write(self, prepared: Prepared, still: Callable[[], None] = always) -> None:
        """Write a prepared file; FileChanged if somebody else changed it since the last read.

        For ``still`` see `ConfigStore.write`. Raises InputError.
        """
        assert isinstance(prepared, PreparedFile)
        if prepared.changed:
            self.store.write(prepared.after, before=prepared.before, still=still)
            self._data, self._file, self._drafted = prepared.after, prepared.says, None
            while self._leaving:
                self._forget(self._leaving.pop())
            self._names = frozenset((*prepared.says.configured_leaves, *prepared.says.configured_parents))
        self._settle()

    @property
    def beside(self) -> ConfigStore:
        """The store beside which the lease is kept."""
        return self.store

    def present(self) -> dict[str, float]:
        """Return the weights in the file as of the last `read`, no matter who wrote them."""
        return {path: self._file.weight(path) for path in self.configured_weights()}

    def traps(self, client: RmClient, hadoop: tuple[int, int]) -> tuple[Trap, ...]:
        """Find the traps of controlling this cluster; the RM's answers are cached until `forget_traps`."""
        return self._traps.of(client, hadoop, lambda site: fair_traps(hadoop, site, self._file))

    def forget_traps(self) -> None:
        """Query the RM again at the next `traps`."""
        self._traps.forget()

    def recognise_by(self, recognise: Callable[[], None]) -> None:
        """No-op: the file is the same whichever ResourceManager answers."""

    def touch(self) -> None:
        """Rewrite the file unchanged, to renew its modification time."""
        data = self.store.read()
        self.store.write(data, before=data)

    def load(self, client: RmClient) -> None:
        """Make the RM read the file."""
        client.refresh_queues()

    def confirm(self, client: RmClient, wanted: Mapping[str, float], *, timeout_s: float, every_s: float) -> None:
        """Wait until the RM shows these weights. Raises NotEffective."""
        client.confirm_weights(wanted, timeout_s=timeout_s, every_s=every_s)

    def in_force(self, client: RmClient) -> dict[str, float]:
        """Return the weights that are in force in the RM."""
        return {path: queue.weight for path, queue in client.effective_queues().items()}

    def _by_hand(self, share: object) -> bool:
        if share is None:
            return True
        # No administrator wants a weight that hangs or breaks the ResourceManager.
        if not isinstance(share, float) or not 0.0 <= share <= WEIGHT_MAX:
            return False
        few = float32(float(f"{share:.5g}")) == share
        return float32(float(f"{share:.3g}")) == share or (few and grid_weight(share) != share)

    def _changed_by_hand(self, groups: Mapping[str, Mapping[str, object]], stands: Mapping[str, Values]) -> set[str]:
        """Like `BaseActuator._changed_by_hand`. A quarter of the weights that a controller computes are round numbers.

        Without a lease, another controller is recognised only by its values. It writes all groups of a file, so if any
        weight looks computed, no group is a person's. The weights that it gives to waiting siblings sum to `LEVEL_SUM`.
        With a lease, this sum shows nothing, because people's weights may have it, too.
        """
        if self.leased:
            return BaseActuator._changed_by_hand(self, groups, stands)
        shares = {path: share for changed in groups.values() for path, share in changed.items()}
        if not all(self._by_hand(share) for share in shares.values()):
            return set()
        found = set()
        for parent, changed in groups.items():
            new = [entitlement(share) for share in changed.values()]
            others = [path for path in stands if path.rpartition(".")[0] == parent and path not in changed]
            stays = [entitlement(stands[path]["weight"]) for path in others]
            if all(weight % _ROUND_PART == 0 for weight in new) or not _sum_to_level(new, stays):
                found.add(parent)
        return found

    def _limit_by_hand(self, attribute: str, value: object) -> bool:
        # A person writes whole hundreds of MiB, or quarters of a GiB; a controller writes a fraction of the cluster.
        return not isinstance(value, list) or any(value[0] % step == 0 for step in (100, 256))

    def _unite(self, stands: Mapping[str, Values]) -> list[Drift]:
        """Take over present scheduling policies if the baseline's no longer fit the administrator's other policies.

        Weights need no such check, because they are valid in any combination.
        """
        policy: Attribute = "scheduling_policy"
        if not any(policy in managed for managed in self.managed.values()):
            return []
        wrong = {one.queue for one in refused(self._check_own())}
        wrong -= {one.queue for one in refused(check_document(self._data, source="").errors)}
        found = []
        for path in sorted(self.managed):
            near = path in wrong or any((queue or "").rpartition(".")[0] == path for queue in wrong)
            if near and path in stands and policy in self.managed[path]:
                value = stands[path][policy]
                if value != self.baseline[path].get(policy):
                    self.baseline[path][policy] = value
                    self.managed[path][policy][:] = [value]
                    found.append(Drift(path, policy, str(value)))
        return found

    def _check_own(self) -> list[Finding]:
        """Find the mistakes in the administrator's own file."""
        return check_document(self._own_document(), source=self.store.name).errors

    def _own_content(self) -> bytes | None:
        try:
            return self._own_document()
        except InputError:
            return None

    def _own_document(self) -> bytes:
        changes = self._changes(self._restored(_present_values(self._file, self._names)).items())
        return edit_parsed(self._base(), self._file, changes, source=self.store.name).document

    def _own_refusals(self) -> tuple[str, ...]:
        return lines_of(refused(self._check_own()), self.store.name)

    def problems_of(self, prepared: Prepared) -> tuple[str, ...]:
        """Describe why a ResourceManager would refuse the prepared file.

        Reasons that also apply to the administrator's own file are left out.
        """
        errors = check_document(prepared.after, source=self.store.name).errors
        return lines_of(unlike(errors, self._check_own() if errors else []), self.store.name)

    def _changes(self, dues: Iterable[tuple[str, Values]]) -> dict[str, Change]:
        """Return the changes that set the attributes of these queues to these values (None: remove)."""
        changes: dict[str, Change] = {}
        for path, due in dues:
            known, new = self.baseline[path], {name: value for name, value in due.items() if value is not None}
            changes[path] = Change(
                weight=new.get("weight"),
                min_resources=resource_of(new["min_resources"]) if "min_resources" in new else None,
                max_resources=limit_of(new.get("max_resources")),
                scheduling_policy=new.get("scheduling_policy"),
                unset=frozenset(name for name in ATTRIBUTES if name in due and name not in new),
                texts={
                    name: text
                    for name in ATTRIBUTES
                    if (text := self.texts.get(path, {}).get(name)) is not None
                    and name in new
                    and new[name] == known.get(name)
                },
            )
        return changes

    def differences(self, client: RmClient) -> dict[str, str]:
        """Describe, by queue, managed policies and limits that the ResourceManager shows differently.

        The ResourceManager shows a maximum share that is raised to the minimum share and capped at the cluster's size.
        """
        status = client.rest.scheduler()
        found: dict[str, str] = {}
        for path, managed in self.managed.items():
            shown = status.queues.get(path)
            if shown is None or path not in self._names:
                continue
            least = self._file.min_resources(path)
            most, cluster = self._file.max_resources(path).resolve(status.capacity).at_least(least), status.capacity
            most = Resource(min(most.memory_mb, cluster.memory_mb), min(most.vcores, cluster.vcores))
            wanted: dict[str, tuple[object, object]] = {
                "scheduling_policy": (self._file.scheduling_policy(path), shown.policy.lower()),
                "min_resources": (least, shown.minimum),
                "max_resources": (most, shown.maximum),
            }
            for attribute, (has, shows) in wanted.items():
                if attribute in managed and has != shows:
                    words = [resource_text(one) if isinstance(one, Resource) else str(one) for one in (shows, has)]
                    found[path] = f"its {attribute.replace('_', ' ')} is {words[0]}, not {words[1]}"
        return found

    def _back(self, attribute: str, value: object) -> Any:
        return finite(value) if attribute == "weight" and value is not None else value


def _sum_to_level(new: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether some ``new`` weights of siblings sum to `LEVEL_SUM`, alone or with some of the ``others``."""
    if len(new) + len(others) > _FEW:
        return False
    # Upper limit of the effect of rounding to the grid, and of raising to the smallest weight, on the sum.
    slack = LEVEL_SUM / (1 << WEIGHT_BITS) + (len(new) + len(others)) * GRID_MIN
    without, sums = {0.0}, set[float]()
    for weight in others:
        without |= {whole + weight for whole in without}
    for weight in [weight for weight in new if weight > slack]:
        sums |= {whole + weight for whole in without | sums}
    return any(abs(whole - LEVEL_SUM) <= slack for whole in sums)


def _present_values(file: AllocationFile, names: Collection[str] | None = None) -> dict[str, Values]:
    """Return the values of the given queues in a file (None: of all queues that it names)."""
    if names is None:
        names = {*file.configured_leaves, *file.configured_parents}
    return {path: values_of(file.settings.get(path)) for path in names}


def _fitting_policies(
    file: AllocationFile,
    names: Collection[str],
    wanted: Mapping[str, QueuePolicy],
    own: Mapping[str, QueuePolicy],
) -> tuple[dict[str, QueuePolicy], list[str]]:
    """Return which of the wanted scheduling policies can be written or stay written, and why the others cannot.

    A ResourceManager does not create a queue whose policy its parent's policy disallows, so a change that does not fit
    the queues above and below it is left out. ``own``: the administrator's policies where the file has a controller's.
    """
    tree, problems = queue_tree(file), []
    has = {queue.path: own.get(queue.path, queue.policy) for queue in tree}
    differing = {path: policy for path, policy in wanted.items() if path in has and has[path] != policy}
    new = {path: policy for path, policy in differing.items() if path in names}
    for path in differing.keys() - new.keys():
        hint = "; set defaultQueueSchedulingPolicy" if path == ROOT else ""
        problems.append(f"{path} needs the scheduling policy {differing[path]}, and the file does not name it{hint}")
    left_out: dict[str, list[str]] = {}
    while True:
        after = {**has, **new}
        misfit = next(
            (
                queue
                for queue in tree
                if queue.parent is not None and not is_child_policy_allowed(after[queue.parent], after[queue.path])
            ),
            None,
        )
        changed = [path for path in (misfit.path, misfit.parent) if path in new] if misfit is not None else []
        if misfit is None or not changed:
            break
        what = f"{after[misfit.path]} is not allowed below {misfit.parent}, which has {after[misfit.parent or ROOT]}"
        left_out.setdefault(what, []).append(changed[0] or ROOT)
        del new[changed[0] or ROOT]
    for what, paths in left_out.items():
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        problems.append(f"{', '.join(paths[:3])}{more}: the scheduling policy stays as it is, {what}")
    return new, problems


def _child_limit(file: AllocationFile, path: str) -> dict[str, str]:
    """Return the limit that an ad hoc queue inherits from its parent, which it would lose by being named."""
    limit = file.max_child_resources(path.rpartition(".")[0])
    return {} if limit is None else {"maxResources": resource_text(limit)}


def _scaled(weights: Mapping[str, float], names: Collection[str]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Scale the weights of named queues for unnamed (ad hoc) siblings, which always have weight 1.

    Only the ratio between siblings matters, so the named siblings' weights are divided by the mean of the weights that
    the ad hoc siblings should have. If the result would leave the valid range, the factor is limited: the ratios among
    the named siblings are preserved, and their ratio to the ad hoc siblings is as close as possible.
    """
    ad_hoc: dict[str, list[float]] = {}
    unnamed: list[str] = []
    for path, weight in weights.items():
        if path not in names:
            ad_hoc.setdefault(path.rpartition(".")[0], []).append(weight)
            unnamed.append(path)
    found = {path: weight for path, weight in weights.items() if path in names}
    for parent, beside in ad_hoc.items():
        level = [path for path in found if path.rpartition(".")[0] == parent]
        if not level:
            continue
        factor = len(beside) / sum(beside)
        least, most = min(found[path] for path in level), max(found[path] for path in level)
        factor = min(max(factor, WEIGHT_MIN / least), WEIGHT_MAX / most)
        for path in level:
            found[path] = min(max(found[path] * factor, WEIGHT_MIN), WEIGHT_MAX)
    return {path: float32(weight) for path, weight in found.items()}, tuple(unnamed)
