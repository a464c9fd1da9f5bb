"""Find all mistakes in a capacity-scheduler.xml, with line numbers, whether the RM refuses or silently accepts them.

`loading` finds the mistakes that the RM refuses, and `advice` finds settings that are valid but probably not intended.
This module finds settings that the RM ignores or interprets differently. Follows Hadoop 3.4.2 and 3.5.0;
tests/oracle/test_capacity_files.py and test_capacity_loading.py compare the results with Hadoop's own classes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.base.errors import nearest
from harness.model.queues import ROOT
from harness.yarn.capacity import known
from harness.yarn.capacity.advice import find_traps
from harness.yarn.capacity.amounts import is_absolute, is_vector, parse_absolute, unread
from harness.yarn.capacity.known import FLAG, REAL, WHOLE
from harness.yarn.capacity.loading.reading import Node, Reading, Refusal
from harness.yarn.capacity.loading.start import find_refusals, read_tree
from harness.yarn.capacity.properties import ENOUGH, PREFIX, Site
from harness.yarn.capacity.settings import Settings
from harness.yarn.fair.dom import Element, Instruction, Text
from harness.yarn.fair.javanum import parse_float, parse_int, trim
from harness.yarn.fair.resources import custom_types
from harness.yarn.fair.values import Check, Spot
from harness.yarn.findings import Finding, Fix, Verdict
from harness.yarn.misspelt import likely
from harness.yarn.releases import LINES

_ACL_CODES = ("YF216", "YF309")
_HADOOP = "org.apache.hadoop."
_OF_USERS = re.compile(r"user\.(?:.+\.)?max-parallel-apps")
#: Lists that may be empty.
_MAY_BE_EMPTY = frozenset(
    {"queue-mappings", "workflow-priority-mappings", "accessible-node-labels", "default-node-label-expression"}
)
#: A queue's capacity, in the default partition or in a label's.
_OWN_CAPACITY = re.compile(r"(?:accessible-node-labels\.[^.]+\.)?capacity")
#: Settings whose value is the name of a class.
_CLASSES = ("resource-calculator", "ordering-policy", "auto-create-child-queue.management-policy")
#: Codes of refusals (`_EFFECTS`), and of findings about ignored settings that may cause such refusals (`_CAUSES`).
_EFFECTS = ("YF110", "YF143", "YF144")
_CAUSES = ("YF201", "YF202", "YF215")
#: Maximum number of suggestions that are validated on the whole configuration; further findings have no suggestion.
_MOST_TRIALS = 20
#: More properties than this with the same wrong prefix are reported as one finding.
_FEW_NAMES = 2
#: More queues than this that their parent does not list are reported as one finding, because the list is wrong.
_FEW_QUEUES = 2


def _without_misspelt_prefix(name: str) -> str:
    """Return a property's name after its misspelt or missing prefix; "" if the name has an unrelated prefix."""
    if name.startswith(f"{ROOT}."):
        return name
    parts = name.split(".")
    prefix = ".".join(parts[:3])
    if len(parts) > 3 and nearest(f"{prefix}.", [PREFIX]) and not prefix.endswith((".fair", ".maximum-allocation")):
        return ".".join(parts[3:])
    return ""


def is_configuration(data: bytes) -> bool:
    """Return whether this is a Hadoop configuration file rather than an allocation file, by its root element."""
    found = re.search(
        rb"<\s*([A-Za-z_][\w.-]*)", re.sub(rb"<!--.*?-->|<\?.*?\?>|<!.*?>", b"", data[:65_536], flags=re.S)
    )
    return found is not None and found[1] == b"configuration"


def validate_properties(
    data: str | bytes,
    *,
    source: str = "capacity-scheduler.xml",
    site: Mapping[str, str] | None = None,
    hadoop: tuple[int, int] | None = None,
) -> Verdict:
    """Return every mistake in a Capacity Scheduler's file. Never raises because of the content.

    Parameters
    ----------
    data : str or bytes
        The document.
    source : str
        Name of the document in messages.
    site : Mapping[str, str] or None
        Properties of yarn-site.xml (None: unknown).
    hadoop : tuple[int, int] or None
        The Hadoop release that has to load the document, as (3, 5). None: all releases of
        `harness.yarn.releases.LINES`.
    """
    check = _Check(site, hadoop=hadoop)
    return check.verdict_on(data, source, check.file)


def validate_values(
    values: Mapping[str, str], *, source: str = "the configuration store", site: Mapping[str, str] | None = None
) -> Verdict:
    """Return every mistake in properties. A finding's line number is the position of its property, from 1."""
    return _verdict_of_values(_Check(site), values, source)


def _verdict_of_values(check: _Check, values: Mapping[str, str], source: str) -> Verdict:
    root = Element("configuration", {}, 1)
    for line, (name, value) in enumerate(values.items(), start=1):
        parts: list[Element | Text | Instruction] = [
            Element("name", {}, line, [Text(name)]),
            Element("value", {}, line, [Text(value)]),
        ]
        root.children.append(Element("property", {}, line, parts))
    return check.verdict_of(root, source, check.file)


@dataclass(frozen=True, slots=True)
class _Rename:
    """A property with a misspelt or missing prefix: its name, the probably intended name, and its value."""

    spot: Spot
    name: str
    better: str
    text: str

    @property
    def prefix(self) -> str:
        """Return the text in place of the scheduler's prefix; "" if it is missing."""
        rest = self.better.removeprefix(PREFIX)
        return (
            self.name.removesuffix(rest) if self.better.startswith(PREFIX) and self.name.endswith(rest) else self.name
        )


class _Check(Check):
    """One check of a configuration.

    ``joins``: whether to join findings with the same cause. It is False for the checks by which causes are found.
    """

    def __init__(
        self, site: Mapping[str, str] | None, *, hadoop: tuple[int, int] | None = None, joins: bool = True
    ) -> None:
        super().__init__()
        #: The Hadoop releases that have to load the configuration (one per line of releases).
        self.releases = LINES if hadoop is None else (hadoop,)
        self.site, self.joins = None if site is None else Site.of(site), joins
        #: Full name of each property -> its text and its element.
        self.values: dict[str, tuple[str, Element]] = {}
        self.final: set[str] = set()
        self.nodes: dict[str, Node] = {}
        #: Properties that the RM refuses, about which nothing else is reported.
        self.refused_keys: set[str] = set()
        self.trials = 0
        #: Properties with a misspelt or missing prefix.
        self.renames: list[_Rename] = []

    def file(self, root: Element) -> None:
        if root.tag != "configuration":
            self.at(root).report("YF002", f"the root element is <{root.tag[:40]}>", "begin with <configuration>")
            return
        self._stray(root, "configuration")
        for item in root.elements():
            self._property(item)
        if not any(name.startswith(PREFIX) for name in self.values) and any(root.elements()):
            what = "no property here is the Capacity Scheduler's"
            hint = "give capacity-scheduler.xml, or the allocation file that yarn.scheduler.fair.allocation.file names"
            self.verdict.findings = [found for found in self.verdict.findings if found.code != "YF223"]
            whole = all(item.tag == "property" for item in root.elements())
            if whole and not self.verdict.findings and not self.renames:
                self.at(root).report("YF002", what, hint)
                return
        texts = {name: text for name, (text, _) in self.values.items()}
        reading = Reading(Settings(texts, self.site), site=self.site, release=self.releases[0])
        tree = read_tree(reading)
        self.nodes = {} if tree is None else {node.path: node for node in tree.tree()}
        for refusal in self._of_releases(reading, texts):
            self.refused_keys.add(refusal.key)
            self._spot(refusal, root).report(refusal.code, refusal.what, refusal.hint)
        self._lists()
        unknown: dict[str, list[str]] = {}
        for name, (text, item) in self.values.items():
            if name.startswith(PREFIX):
                self._setting(name[len(PREFIX) :], text, item, unknown)
            elif name in known.ELSEWHERE:
                self._kind(self.at(item), text, known.ELSEWHERE[name], name)
        self._misspelt_prefixes()
        self._unknown_queues(unknown)
        if tree is not None:
            find_traps(self, tree, reading)
        if self.joins:
            self._causes()

    def _of_releases(self, reading: Reading, texts: Mapping[str, str]) -> Iterator[Refusal]:
        """Yield the refusals of all releases. A refusal that some releases lack names the releases."""
        others = self.releases[1:] if reading.release_matters else ()
        if not others:
            yield from reading.refusals
            return
        by: dict[Refusal, list[tuple[int, int]]] = {refusal: [reading.release] for refusal in reading.refusals}
        for release in others:
            for refusal in find_refusals(texts, site=self.site, release=release):
                by.setdefault(refusal, []).append(release)
        for refusal, releases in by.items():
            yield replace(refusal, what=refusal.what + self._named(releases))

    def _named(self, releases: Sequence[tuple[int, int]]) -> str:
        """Return a suffix that names the releases of a finding.

        "" if it concerns all releases that have to load the file.
        """
        if len(releases) == len(self.releases):
            return ""
        return f" (in Hadoop {' and '.join(f'{first}.{second}' for first, second in releases)})"

    # ---- one mistake, one message

    def _causes(self) -> None:
        """Join refusals with the ignored settings that cause them, such as a wrong sum with a misspelt capacity."""
        findings = self.verdict.findings
        effects = [found for found in findings if found.code in _EFFECTS]
        causes = [found for found in findings if found.fix is not None and found.code in _CAUSES]
        # If Hadoop parses a list of queues differently, findings about missing queues are its consequences.
        causes = [found for found in causes if found.code == "YF215"] or causes
        if not effects or not causes or len(causes) > _MOST_TRIALS:
            return
        whole = self._refused_with(causes)
        if not whole <= self._refused_with([]):
            return
        # For each finding, determine what the RM still refuses if all other findings are fixed.
        without = [(cause, self._refused_with([one for one in causes if one is not cause])) for cause in causes]
        joined: list[Finding] = []
        told: list[Finding] = []
        mended: list[tuple[str, str | None]] = []
        for effect in effects:
            identity = (effect.code, effect.queue)
            needed = [cause for cause, refused in without if cause not in told and identity in refused]
            if identity in whole or not needed:
                continue
            changes = tuple(change for cause in needed if cause.fix is not None for change in cause.fix.properties)
            ignored = list(dict.fromkeys(self._short(name) for name, text in changes if text is None))
            why = f"{', '.join(ignored[:3])} {'is' if len(ignored) == 1 else 'are'} ignored"
            joined.append(
                Finding(
                    needed[0].line,
                    effect.queue,
                    f"{effect.what}: {why if ignored else needed[0].what}",
                    "; ".join(dict.fromkeys(cause.hint for cause in needed)),
                    effect.code,
                    self._fix(changes),
                )
            )
            told += [effect, *needed]
            mended += changes
        if not joined:
            return
        rest = {(found.code, found.queue, found.what) for found in self._findings_with(mended)}
        findings[:] = [
            found
            for found in findings
            if found not in told
            and (
                found.code not in (*_CAUSES, "YF219", "YF303")
                or found in causes
                or (found.code, found.queue, found.what) in rest
            )
        ]
        findings += joined

    def _changed(self, changes: Iterable[tuple[str, str | None]]) -> dict[str, str]:
        values = {name: text for name, (text, _) in self.values.items()}
        for name, text in changes:
            values.pop(name, None)
            if text is not None:
                values[name] = text
        return values

    def _refused_with(self, causes: Iterable[Finding]) -> set[tuple[str, str | None]]:
        """Return the (code, queue) of all refusals that remain if these findings are fixed."""
        changes = [change for cause in causes if cause.fix is not None for change in cause.fix.properties]
        return {
            (found.code, found.queue)
            for found in find_refusals(self._changed(changes), site=self.site, release=self.releases[0])
        }

    def _findings_with(self, changes: Iterable[tuple[str, str | None]]) -> list[Finding]:
        check = _Check(self.site, hadoop=self.releases[0], joins=False)
        return _verdict_of_values(check, self._changed(changes), "with changes").findings

    # ---- properties

    def spot(self, key: str, queue: str | None = None) -> Spot | None:
        """Return the property of this name (without the scheduler's prefix); None if there is none."""
        found = self.values.get(key if key.startswith("yarn.") else PREFIX + key)
        return None if found is None else self.at(found[1], queue)

    def text(self, key: str, default: str = "") -> str:
        """Return a property's text."""
        found = self.values.get(key if key.startswith("yarn.") else PREFIX + key)
        return default if found is None else found[0]

    def _spot(self, refusal: Refusal, root: Element) -> Spot:
        """Return the location of the faulty property: in this file, or in yarn-site.xml if it is only there."""
        name = refusal.key if refusal.key.startswith("yarn.") else PREFIX + refusal.key
        if self.site is not None and name in self.site and self.spot(refusal.key) is None:
            element = Element("property", {}, self.site.lines.get(name, 1))
            return Spot(self.verdict, element, refusal.queue, self.site.source)
        return self.at(self._place(refusal.key, root), refusal.queue)

    def _place(self, key: str, root: Element) -> Element:
        """Return the location of a property, or of the list of its queue's siblings, or of the document."""
        if (found := self.spot(key)) is not None:
            return found.element
        path = key.rpartition(".")[0]
        while path:
            for near in (f"{path}.queues", f"{path}.capacity", f"{path.rpartition('.')[0]}.queues"):
                if (found := self.spot(near)) is not None:
                    return found.element
            path = path.rpartition(".")[0]
        return root

    def _stray(self, element: Element, tag: str) -> None:
        if any(isinstance(child, Text) and child.data.strip() for child in element.children):
            self.at(element).report("YF004", f"text between the elements of <{tag}> is ignored", "remove it")

    def _property(self, item: Element) -> None:
        spot = self.at(item)
        if item.tag != "property":
            hint = "write its properties here" if item.tag.endswith("include") else "write <property>"
            spot.report("YF220", f"<{item.tag[:40]}> is not read as a property", hint)
            return
        self._stray(item, "property")
        said: dict[str, str] = dict(item.attributes)
        for part in item.elements():
            if part.tag not in ("name", "value", "final", "source", "description", "tag"):
                self.at(part).report("YF220", f"<{part.tag[:40]}> is ignored", "write <name> and <value>")
            said[part.tag] = part.all_text()
        name = trim(said.get("name", ""))
        if said.get("value") == "" and name.startswith(PREFIX) and name.rpartition(".")[2] in _MAY_BE_EMPTY:
            # An empty list is equivalent to no list, and occurs in Hadoop's own sample file.
            return
        if not name or not said.get("value"):
            what = "a property without name or value is ignored"
            if name and said.get("value") == "":
                what = f"{name[:100]} has an empty value, and is ignored"
            spot.report("YF221", what, "give it both, or remove it")
            return
        if not name.startswith(PREFIX) and name not in known.ELSEWHERE:
            close = nearest(name, known.ELSEWHERE) if name.startswith("yarn.resourcemanager.monitor.capacity.") else ""
            if not close and (rest := _without_misspelt_prefix(name)):
                close = f"{PREFIX}{rest}"
            if close:
                self.renames.append(_Rename(spot, name, close, said["value"]))
            else:
                what = f"{name[:100]} is not the Capacity Scheduler's"
                spot.report("YF223", what, "write it into yarn-site.xml")
            return
        if name in self.final:
            what = f"{name[:100]} is ignored: line {self.values[name][1].line} has <final>true</final>"
            spot.report("YF225", what, "remove it")
            return
        if name in self.values:
            line = self.values[name][1].line
            spot.report("YF222", f"{name[:100]} appears twice (line {line} too), the last counts", "remove one")
        self.values[name] = (said["value"], item)
        if said.get("final") == "true":
            self.final.add(name)

    # ---- queues

    def _lists(self) -> None:
        """Check the lists of children."""
        for path in self.nodes:
            key = f"{path}.queues"
            spot = self.spot(key, path)
            if spot is None:
                continue
            text = self.text(key)
            names = [trim(name) for name in text.split(",")]
            if self._listed_otherwise(spot, path, names):
                continue
            for name, times in Counter(names).items():
                if not name and text.strip(",").strip() and "" in text.split(","):
                    spot.report("YF215", "an empty name in its list of queues", "remove the comma")
                elif not name:
                    spot.report("YF215", "a blank name in its list of queues", "remove it")
                elif "." in name:
                    what = f"child {name[:60]!r} has a dot"
                    spot.report("YF215", what, "name each child once, without its parent")
                elif times > 1:
                    spot.report("YF215", f"child {name[:60]!r} appears twice", "name each child once")

    def _listed_otherwise(self, spot: Spot, path: str, names: list[str]) -> bool:
        """Report a list of full paths, or with separators other than commas, if its queues have settings."""
        parts = [part.removeprefix(f"{path}.") for name in names for part in re.split(r"[\s;|]+", name) if part]
        if parts == names:
            return False  # nearly all lists are correct, so the search below is rarely needed
        known = {key.removeprefix(f"{path}.").partition(".")[0] for key in map(self._short, self.values)}
        if not all(part in known for part in parts):
            return False
        listing = ((f"{PREFIX}{path}.queues", ",".join(parts)),)
        what = f"its list of queues {self.text(f'{path}.queues')[:60]!r} is not the children's own names between commas"
        fix = self._fix(listing) if self._harmless(listing, as_many=True) else None
        spot.report("YF215", what, f"write {','.join(parts)[:80]}", fix)
        return True

    @staticmethod
    def _short(name: str) -> str:
        return name.removeprefix(PREFIX)

    def _owner(self, key: str) -> str:
        """Return the deepest existing queue whose path is a prefix of a property's key; "" if there is none."""
        path = key
        while path:
            path = path.rpartition(".")[0]
            if path in self.nodes:
                return path
        return ""

    def _setting(self, key: str, text: str, item: Element, unknown: dict[str, list[str]]) -> None:
        if key != ROOT and key.startswith(ROOT + "."):
            owner = self._owner(key) or ROOT
            name = key.removeprefix(owner + ".")
            kind = known.queue_kind(name)
            if kind is not None:
                self._kind(self.at(item, owner), text, kind, name)
            else:
                self._not_of(key, owner, name, item, unknown)
            return
        kind = known.global_kind(key)
        if kind is not None:
            self._kind(self.at(item), text, kind, key)
        else:
            self._not_global(key, item, unknown)

    def _not_of(self, key: str, owner: str, name: str, item: Element, unknown: dict[str, list[str]]) -> None:
        """Report a property whose name starts with a queue's path and that is not a setting of the queue."""
        parts = name.split(".")
        for index in range(1, len(parts)):
            rest = ".".join(parts[index:])
            if known.queue_kind(rest) is None:
                continue
            path = f"{owner}.{'.'.join(parts[:index])}"
            if "*" in parts[:index] and rest.startswith("auto-queue-creation-v2."):
                return
            unknown.setdefault(f"{owner}.{parts[0]}", []).append(key)
            del path
            return
        # A template may apply to queues of any name: root.a.*.auto-queue-creation-v2.template.
        stars = len(name) - len(name.lstrip("*."))
        below, name = name[:stars], name[stars:]
        template = below + next((prefix for prefix in known.TEMPLATES if name.startswith(prefix)), "")
        name = below + name
        close = known.OLD_NAMES.get(name[len(template) :]) or likely(name[len(template) :], known.QUEUE)
        spot = self.at(item, owner)
        if key in self.refused_keys:
            return
        if not close and len(parts) > 1 and not template:
            family = nearest(parts[0], [*known.QUEUE, "user-settings", "leaf-queue-template"])
            if not family or family == parts[0]:
                ending = likely(parts[-1], known.QUEUE)
                if ending and f"{owner}.{'.'.join(parts[:-1])}" in unknown:
                    unknown[f"{owner}.{parts[0]}"].append(key)
                    return
        self._misspelt(spot, key, f"{owner}.{template}{close}" if close else "", name)

    def _misspelt(self, spot: Spot, key: str, better: str, name: str) -> None:
        hint, fix = self._rename(key, better)
        what = f"{name[:80]} is not a setting of the Capacity Scheduler, it is ignored"
        spot.report("YF201", what, hint or "correct its name, or remove it", fix)

    def _misspelt_prefixes(self) -> None:
        """Report each property with a misspelt or missing prefix; several with the same prefix are one finding."""
        alike: dict[str, list[_Rename]] = {}
        for one in self.renames:
            alike.setdefault(one.prefix, []).append(one)
        for prefix, group in alike.items():
            if len(group) > _FEW_NAMES:
                self._prefix(prefix, group)
                continue
            for one in group:
                one.spot.report("YF201", f"{one.name[:100]} is not a setting, it is ignored", f"write {one.better}")

    def _prefix(self, prefix: str, group: list[_Rename]) -> None:
        changes: list[tuple[str, str | None]] = []
        for one in group:
            changes += [(one.name, None), (one.better, one.text)]
        what = f"{len(group)} properties begin with {prefix[:60]}, and are ignored"
        hint = f"begin them with {PREFIX}"
        if not prefix:
            what = f"{len(group)} properties lack {PREFIX} before their names, and are ignored"
            hint = f"write it before {group[0].name[:80]} and the others"
        double = any(one.better in self.values for one in group)
        harmless = not double and self._harmless(tuple(changes), as_many=True)
        group[0].spot.report("YF201", what, hint, self._fix(tuple(changes)) if harmless else None)

    def _not_global(self, key: str, item: Element, unknown: dict[str, list[str]]) -> None:
        """Report a property outside root that is not one of the scheduler's own."""
        if key in self.refused_keys:
            return
        parts = key.split(".")
        for index in range(1, len(parts)):
            rest = ".".join(parts[index:])
            if known.queue_kind(rest) is None:
                continue
            path = ".".join(parts[:index])
            queue = next((q for q in self.nodes if q == f"{ROOT}.{path}" or q.endswith("." + path)), None)
            spot = self.at(item, queue)
            if queue is None and rest in known.GLOBAL and nearest(path, ["root"]):
                queue = None
            if queue is not None:
                hint, fix = self._rename(key, f"{queue}.{rest}")
                what = f"{path}.{rest} is ignored: a queue's path begins with root"
                spot.report("YF202", what, hint or f"write {queue}.{rest} if that is meant", fix)
                return
            unknown.setdefault(parts[0], []).append(key)
            return
        if key == "queues" and ROOT not in self.nodes:
            self._misspelt(self.at(item), key, f"{ROOT}.queues", key)
            return
        if known.queue_kind(key) is not None:
            what = f"{key} is a queue's setting, and names none: it is ignored"
            self.at(item).report("YF201", what, f"write root.QUEUE.{key}, for the queue that is meant")
            return
        self._misspelt(self.at(item), key, likely(key, known.GLOBAL), key)

    def _rename(self, key: str, better: str) -> tuple[str, Fix | None]:
        """Return the hint and the fix to rename a property; ("", None) if that would cause new refusals."""
        if not better or better == key:
            return "", None
        text = self.text(key)
        if PREFIX + better in self.values:
            if trim(self.text(better)) == trim(text):
                return f"remove it: {better} says the same", Fix(((PREFIX + key, None),))
            return f"remove it, or {better}, which has another value", None
        changes: tuple[tuple[str, str | None], ...] = ((PREFIX + key, None), (PREFIX + better, text))
        return (f"write {better}", self._fix(changes)) if self._harmless(changes) else ("", None)

    def _harmless(self, changes: tuple[tuple[str, str | None], ...], *, as_many: bool = False) -> bool:
        """Return whether these changes cause no new refusal by the RM.

        ``as_many``: a new refusal may replace an old one.
        """
        if self.trials >= _MOST_TRIALS:
            return False
        self.trials += 1
        values = {name: text for name, (text, _) in self.values.items()}
        before = {(found.code, found.key) for found in find_refusals(values, site=self.site, release=self.releases[0])}
        for name, text in changes:
            if text is None:
                values.pop(name, None)
            else:
                values[name] = text
        after = find_refusals(values, site=self.site, release=self.releases[0])
        if as_many and before and len(after) <= len(before):
            return True
        return all((found.code, found.key) in before for found in after)

    def _fix(self, changes: tuple[tuple[str, str | None], ...]) -> Fix | None:
        """Return the changes as an applicable fix; None if an unknown yarn-site.xml may make them invalid.

        For example, Hadoop refuses a queue's maximum allocation above the cluster's, which yarn-site.xml may set.
        """
        if self.site is None:
            before = {(found.code, found.key) for found in find_refusals(self._changed(()), site={})}
            if any((found.code, found.key) not in before for found in find_refusals(self._changed(changes), site={})):
                return None
        return Fix(changes)

    def _unknown_queues(self, unknown: Mapping[str, list[str]]) -> None:
        """Report queues that do not exist (queue -> its settings), with one finding for each probable mistake."""
        # A parent with a misspelt name comes first, because the queues that it lists are unknown as a consequence.
        explained: set[str] = set()
        for path, keys in unknown.items():
            if f"{path}.queues" in keys and (better := self._misnamed(path, keys)):
                listed = self.text(f"{path}.queues").split(",")
                explained |= {path, *(f"{better}.{trim(name)}" for name in listed)}
        missing: dict[str, list[str]] = {}
        for path, keys in unknown.items():
            if path.startswith(f"{ROOT}.") and ROOT not in self.nodes:
                # The missing list of root's queues has been reported already.
                continue
            if path not in explained and not self._misnamed(path, keys):
                missing.setdefault(path.rpartition(".")[0], []).append(path)
        for parent, paths in missing.items():
            if parent in self.nodes and len(paths) > _FEW_QUEUES:
                self._unlisted(parent, paths, unknown[paths[0]][0])
                continue
            for path in paths:
                self._unlisted(parent, [path], unknown[path][0], self._ignored(path, unknown[path]))

    def _ignored(self, path: str, keys: list[str]) -> str:
        shown = [key.removeprefix(f"{path}.") for key in keys]
        names = ", ".join(shown[:3]) + (f" and {len(shown) - 3} more settings" if len(shown) > 3 else "")
        return f"no such queue: {names} {'is' if len(shown) == 1 else 'are'} ignored"

    def _misnamed(self, path: str, keys: list[str]) -> str:
        """Report settings under the misspelt name of another queue; return that queue, or "" if there is none."""
        parent, _, name = path.rpartition(".")
        siblings = [child.path for child in self.nodes[parent].children] if parent in self.nodes else list(self.nodes)
        # Compare short names, because paths below the same parent are always similar.
        names_of = {each.rpartition(".")[2]: each for each in siblings}
        close = names_of.get(likely(name, names_of, whole=True), "")
        if not close or any(PREFIX + close + key.removeprefix(path) in self.values for key in keys):
            return ""
        changes: list[tuple[str, str | None]] = []
        for key in keys:
            changes += [(PREFIX + key, None), (PREFIX + close + key.removeprefix(path), self.text(key))]
        if not self._harmless(tuple(changes), as_many=True):
            return ""
        item = self.values[PREFIX + keys[0]][1]
        self.at(item, path).report("YF202", self._ignored(path, keys), f"write {close}", self._fix(tuple(changes)))
        return close

    def _unlisted(self, parent: str, paths: list[str], key: str, what: str = "") -> None:
        """Report queues that their parent does not list, at the first of their properties."""
        names = [path.rpartition(".")[2] for path in paths]
        them = names[0] if len(names) == 1 else "them"
        if not what:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            what = f"it has no queues {', '.join(names[:3])}{more}: their settings are ignored"
        spot = self.at(self.values[PREFIX + key][1], paths[0] if len(paths) == 1 else parent)
        if parent not in self.nodes:
            spot.report("YF202", what, "write the queue's path, which begins with root, or remove them")
            return
        old = self.text(f"{parent}.queues")
        listing = ((f"{PREFIX}{parent}.queues", ",".join([*([old] if old else []), *names])),)
        if self._harmless(listing):
            spot.report("YF202", what, f"name {them} in {parent}.queues", self._fix(listing))
        else:
            its = "its" if len(names) == 1 else "their"
            hint = f"name {them} in {parent}.queues and fit the capacities, or remove {its} settings"
            spot.report("YF202", what, hint)

    # ---- values

    def _kind(self, spot: Spot, text: str, kind: str, name: str) -> None:
        key = name if spot.queue is None else f"{spot.queue}.{name}"
        if key in self.refused_keys:
            return
        if "${" in text:
            what = f"{name} refers to another property"
            spot.report("YF217", what, "write the value, so that it can be checked")
            return
        words, queue = trim(text), spot.queue
        if kind == FLAG and words.lower() not in ("true", "false"):
            what = f"{name} is {words[:40]!r}, which is taken for its default"
            spot.report("YF203", what, "write true or false")
        elif kind == WHOLE:
            self._number(spot, words, name, parse_int)
        elif kind == REAL:
            self._number(spot, words, name, parse_float)
        elif name == "acl_application_max_priority":
            return
        elif name == "mapping-rule-json-file":
            what = f"the rules in {words[:80]} are not checked here"
            spot.report("YF217", what, "see that they name queues of this file, or write them as mapping-rule-json")
        elif name.startswith("acl_"):
            spot.acl(name, text, _ACL_CODES)
        elif queue is not None and _OWN_CAPACITY.fullmatch(name):
            self._capacity(spot, queue, name, text)
        elif name == "maximum-capacity" and queue is not None:
            self._maximum(spot, queue, text)
        elif name in _CLASSES and "." in words and not words.startswith(_HADOOP):
            spot.report("YF224", f"{name} {words[:80]} is not Hadoop's own", "check the class's name")

    def _number(self, spot: Spot, text: str, name: str, parse: Callable[[str], float]) -> None:
        try:
            value = parse(text)
        except ValueError as error:
            if not text.lower().startswith(("0x", "-0x")):
                spot.report("YF204", f"{name}: {error}", "write a plain number")
            return
        if name == "maximum-am-resource-percent":
            if not value >= 0:
                spot.report("YF205", f"{name} {text} lets one ApplicationMaster run at a time", "write 0 to 1")
            elif 1 < value < ENOUGH:
                hint = f"write {value / 100:g} for {value:g} per cent; 1 is the whole queue, {ENOUGH:g} no limit"
                spot.report("YF305", f"{name} {text} is above 1: it is a part, not per cent", hint)
            elif value == 0:
                what = f"{name} {text}: one application of the queue runs at a time"
                spot.report("YF313", what, "write 0.1, or more")
        elif name == "user-limit-factor" and not (value > 0 or value == -1):
            spot.report("YF206", f"{name} {text}: no user gets anything", "write -1 for no limit")
        elif name == "minimum-user-limit-percent" and not 0 <= value <= 100:
            spot.report("YF207", f"{name} {text} is not within 0 and 100", "write per cent")
        elif (name == "max-parallel-apps" or _OF_USERS.fullmatch(name)) and value < 1:
            what = f"{name} {text}: no application ever runs"
            spot.report("YF208", what, "write 1 or more, or remove it")
        elif name == "maximum-applications" and value <= 0 and not (value < 0 and spot.queue is not None):
            spot.report("YF209", f"{name} {text}: every submission is rejected", "write 1 or more")
        elif name == "global-queue-max-application" and value < 1:
            what = f"{name} {text} is ignored: the limit follows the share"
            spot.report("YF210", what, "write 1 or more")

    def _legacy(self) -> bool:
        return trim(self.text("legacy-queue-mode.enabled", "true")).lower() != "false"

    def _types(self) -> tuple[str, ...]:
        names = self.site.get("yarn.resource-types", "").split(",") if self.site is not None else []
        return tuple(trim(name) for name in names if trim(name))

    def _capacity(self, spot: Spot, path: str, name: str, text: str) -> None:
        words = trim(text)
        if path == ROOT and name == "capacity":
            if words not in ("100", "100.0") and not text.endswith("w"):
                spot.report("YF211", "root has the whole cluster: another capacity is ignored", "remove it")
            return
        if words.startswith("["):
            self._absolute(spot, name, text)
        elif words.endswith("w"):
            value = _real(words[: words.index("w")])
            if math.isnan(value) or value < 0:
                spot.report("YF212", f"weight {words} is taken for none: the queue has no capacity", "write 1w")
        elif math.isnan(_real(words)):
            spot.report("YF212", f"capacity {words} is no number: the queue has no capacity", "write per cent")

    def _absolute(self, spot: Spot, name: str, text: str) -> None:
        absolute = is_absolute(text)
        if not absolute and is_vector(text) and not self._legacy():
            return
        if not absolute:
            what = f"{name} {text[:60]!r} counts as 0 per cent in legacy queue mode"
            spot.report("YF218", what, "write [memory=8192,vcores=8]")
            return
        parts = unread(text, self._types())
        custom = [part for part in parts if custom_types(part) and part.partition("=")[2].strip()]
        wrong = [part for part in parts if part not in custom]
        if wrong:
            what = f"{', '.join(repr(trim(part)) for part in wrong)} in {name} {text[:60]!r} is not read"
            spot.report("YF218", what, "write [memory=8192,vcores=8], with units like Gi")
        elif custom and self.site is None:
            what = f"{', '.join(map(trim, custom))} counts only if yarn.resource-types names it"
            spot.report("YF226", what, "check yarn-site.xml (--yarn-site)")
        elif custom:
            what = f"{', '.join(map(trim, custom))} is ignored: yarn.resource-types does not name it"
            spot.report("YF218", what, "name it there, or remove it")
        elif not parse_absolute(text, self._types()) and "memory" not in text:
            # Since 3.5, a vector in flexible queue mode need not contain memory.
            concerned = [release for release in self.releases if self._legacy() or release < (3, 5)]
            if concerned:
                what = f"{name} {text[:60]!r} names no memory, and counts as none{self._named(concerned)}"
                spot.report("YF218", what, "write [memory=8192,vcores=8]")

    def _maximum(self, spot: Spot, path: str, text: str) -> None:
        words = trim(text)
        own = self.text(f"{path}.capacity")
        if path == ROOT:
            return
        if words.startswith("["):
            if self._legacy() and not is_absolute(own):
                what = "an absolute maximum beside another capacity is not read as meant"
                spot.report("YF214", what, "write per cent of the parent")
            return
        value = _real(words)
        if value == -1:
            return
        if self._legacy() and is_absolute(own) and value != 100:
            what = f"maximum-capacity {words} beside an absolute capacity is ignored"
            spot.report("YF214", what, "write [memory=8192,vcores=8]")
            return
        if not 0 <= value <= 100:
            what = f"maximum-capacity {words} is not within 0 and 100"
            spot.report("YF213", what, "write per cent of the parent")
            return
        try:
            percent = parse_float(trim(own or "0"))
        except ValueError:
            return
        if value < percent:
            what = f"maximum-capacity {words} is below its capacity {trim(own)}"
            spot.report("YF213", what, "raise it, or lower the other")


def _real(text: str) -> float:
    """Parse a number as Java does; return NaN for an invalid one."""
    try:
        return parse_float(trim(text))
    except ValueError:
        return math.nan
