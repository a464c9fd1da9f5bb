"""A Hadoop configuration file (``capacity-scheduler.xml``): its properties, and edits that leave all other bytes alone.

The file is parsed like Hadoop does: of two properties with one name the last one counts, unless the first is final;
names are trimmed. Values keep their white space, so that they can be restored exactly, and are trimmed where they are
used. What a value alone does not show (CDATA, character references, comments) is kept beside it
(`ConfigurationFile.contents`). References that an edit cannot preserve (``xi:include``, ``${...}`` in a capacity) are
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, Self
from xml.sax.saxutils import escape

from harness.base.errors import InputError
from harness.yarn.fair.dom import Element, Recoded, empty_tag, from_utf16, parse_xml, spliced, start_tag_end
from harness.yarn.queue_limits import SchedulerLimits

PREFIX = "yarn.scheduler.capacity."
#: The property of asynchronous scheduling, which a ResourceManager reads only at its start.
ASYNCHRONOUS = f"{PREFIX}schedule-asynchronously.enable"
#: A value of user-limit-factor or maximum-am-resource-percent that is so large that it does not limit a user.
ENOUGH = 1000.0
#: An XML declaration in whose encoding every byte is a character.
_LATIN_1 = b'<?xml version="1.0" encoding="iso-8859-1"?>'
#: Value of ``autoCreationEligibility`` in ``/scheduler`` -> the corresponding setting, without ``.enabled``.
_CREATION = {"legacy": "auto-create-child-queue", "flexible": "auto-queue-creation-v2"}


class PropertyText(str):
    """A value to be written as somebody had written it before.

    Parameters
    ----------
    value
        The value as Hadoop reads it.
    content
        The bytes between the tags as latin-1, with comments, CDATA sections and references.
    """

    content: str

    def __new__(cls, value: str, content: str) -> Self:
        """Create the text of this value."""
        made = super().__new__(cls, value)
        made.content = content
        return made


def as_written(value: str, content: str) -> str:
    """Return a value with the content that it was written with; the value alone if the content is another value's."""
    try:
        read = parse_xml(_LATIN_1 + b"<value>" + content.encode("latin-1") + b"</value>", source="content").all_text()
    except InputError:
        return value
    return PropertyText(value, content) if read == value else value


@dataclass(frozen=True, slots=True)
class _Place:
    """A property's text, and the byte offsets of its value's content and of the whole element."""

    value: str
    begin: int
    end: int
    outer_begin: int
    outer_end: int


class Site(Mapping[str, str]):
    """The properties of a yarn-site.xml with their line numbers.

    Parameters
    ----------
    values : Mapping[str, str]
        Name -> text.
    source : str
        Name of the file in messages.
    lines : Mapping[str, int]
        Name -> its line from 1; missing if the line is unknown.
    """

    def __init__(self, values: Mapping[str, str], *, source: str = "yarn-site.xml", lines: Mapping[str, int]) -> None:
        # Hadoop treats an empty value as unset.
        self._values = {name: text for name, text in values.items() if text}
        self.source, self.lines = source, lines

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Site:
        """Create it from properties whose source and lines are unknown."""
        return values if isinstance(values, Site) else cls(values, lines={})

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    """The properties of one file, name -> value, and the location of each in its bytes."""

    data: bytes
    values: Mapping[str, str]
    _places: Mapping[str, _Place]
    _end: int
    #: How to turn an edited UTF-16 file back into its encoding; ``data`` is in UTF-8 then (None: another encoding).
    _recoded: Recoded | None = None
    #: Name -> the bytes of its value between the tags, as latin-1, where the value alone does not tell them.
    contents: Mapping[str, str] = field(default_factory=dict)

    def site(self, source: str) -> Site:
        """Return the file as a yarn-site.xml."""
        lines = {name: self.data.count(b"\n", 0, place.outer_begin) + 1 for name, place in self._places.items()}
        return Site(self.values, source=source, lines=lines)

    def edited(self, changes: Mapping[str, str | None]) -> bytes:
        """Return the file with changed values; None removes a property.

        All other bytes are unchanged. New properties are appended at the end. A `PropertyText` is written with its
        content. Raises InputError for a property whose value is an empty tag, which has no place for a text.
        """
        cuts: list[tuple[int, int, bytes]] = []
        new: list[str] = []
        for name, value in changes.items():
            place = self._places.get(name)
            if place is None:
                if value is not None:
                    new.append(f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n")
            elif value is None:
                begin, end = place.outer_begin, place.outer_end
                # An element that fills its line is removed with the line.
                line = self.data.rfind(b"\n", 0, begin) + 1
                if not self.data[line:begin].strip() and self.data[end : end + 1] == b"\n":
                    begin, end = line, end + 1
                cuts.append((begin, end, b""))
            elif value != place.value:
                if not place.begin:
                    raise InputError(f"{name} has an empty value", hint="give it a value, or take it out")
                text = value.content.encode("latin-1") if isinstance(value, PropertyText) else escape(value).encode()
                cuts.append((place.begin, place.end, text))
        if new:
            line = self.data.rfind(b"\n", 0, self._end) + 1
            at = line if not self.data[line : self._end].strip() else self._end
            lead = b"" if at == line and line else b"\n"
            cuts.append((at, at, lead + "".join(new).encode()))
        edited = spliced(self.data, cuts)
        return edited if self._recoded is None else self._recoded.back(edited)


def parse_configuration(data: bytes, *, source: str, whole: bool = True) -> ConfigurationFile:
    """Parse a configuration file.

    Parameters
    ----------
    data
        The file.
    source
        Its name in messages.
    whole
        Whether all of the file has to be understood. If not, included files, properties written as attributes and
        values that cannot be edited are passed over. This suffices to change a value in its place, but not to tell
        what the scheduler is configured to do.

    Raises
    ------
    InputError
        Hadoop would refuse the file, or, with ``whole``, no edit could preserve it.
    """
    root = parse_xml(data, source=source)
    if (recoded := from_utf16(data)) is not None:
        data = recoded.document
        root = parse_xml(data, source=source)
    if b"\x00" in data:
        raise InputError("the file is not in UTF-8", where=source, hint="save it as UTF-8")

    def refuse(element: Element, what: str, hint: str) -> NoReturn:
        raise InputError(what, where=f"{source}:{element.line}", hint=hint)

    if root.tag != "configuration":
        refuse(root, f"the root element is <{root.tag[:40]}>", "a Hadoop configuration begins with <configuration>")
    # Few files contain the word, so that a large tree is rarely searched.
    for item in root.below() if whole and b"include" in data else ():
        if item.tag.endswith("include"):
            refuse(item, "an included file", "write its properties into this one: they could not be given back")
    found: dict[str, _Place] = {}
    final: set[str] = set()
    for item in root.elements():
        if item.tag != "property":
            continue
        if item.attributes:
            if not whole:
                continue
            refuse(item, "a property as attributes", "write <property><name>...</name><value>...</value>")
        said = {part.tag: part for part in item.elements()}
        key = said["name"].all_text().strip() if "name" in said else ""
        if not key or "value" not in said:
            continue
        if key in final:
            # Hadoop keeps the final value, whatever follows.
            continue
        if "final" in said and said["final"].all_text() == "true":
            final.add(key)
        value = said["value"]
        begin, end = start_tag_end(data, value), value.end
        if empty_tag(data, begin):
            # <value/> has no content to write into.
            if not whole:
                continue
            if key.startswith(PREFIX) and key.endswith(("capacity", "policy")):
                refuse(value, f"{key} has an empty value", "give it a value, or take it out")
            begin, end = 0, 0
        found[key] = _Place(value.all_text(), begin, end, item.start, data.index(b">", item.end) + 1)
    contents = {
        name: data[place.begin : place.end].decode("latin-1")
        for name, place in found.items()
        if place.begin and data[place.begin : place.end] != escape(place.value).encode()
    }
    values = {name: place.value for name, place in found.items()}
    return ConfigurationFile(data, values, found, root.end, recoded, contents)


def shown_properties(limits: SchedulerLimits) -> dict[str, str]:
    """Return the Capacity Scheduler's properties that ``/scheduler`` shows, with their prefix.

    An RM whose configuration is a file shows it nowhere else. The page does not distinguish set values from defaults,
    and it has no settings of the scheduler as a whole. A queue that the scheduler has created by itself is in no
    configuration; its settings come from its parent's template. The page does not show a template without queues. The
    result contains values for it that limit nothing, and `unseen_templates` returns its parent.
    """
    found: dict[str, str] = {}
    templates = _legacy_templates(limits)
    below: dict[str, list[str]] = {}
    for path, queue in limits.queues.items():
        if queue.creation in _CREATION:
            found[f"{PREFIX}{path}.{_CREATION[queue.creation]}.enabled"] = "true"
        if queue.creation == "legacy":
            # -1 would mean no limit, too, but releases before 3.4 use it as a number.
            template = {"user-limit-factor": ENOUGH, "maximum-am-resource-percent": ENOUGH, **templates.get(path, {})}
            found |= {f"{PREFIX}{path}.leaf-queue-template.{key}": f"{value:g}" for key, value in template.items()}
        if queue.created:
            continue
        if queue.parent is not None:
            below.setdefault(queue.parent, []).append(path.rpartition(".")[2])
            found[f"{PREFIX}{path}.capacity"] = queue.capacity
        for key, value in (queue.settings or {}).items():
            if queue.parent is not None or key != "maximum-capacity":
                found[f"{PREFIX}{path}.{key}"] = f"{value:g}"
    return {**found, **{f"{PREFIX}{path}.queues": ",".join(names) for path, names in below.items()}}


def unseen_templates(limits: SchedulerLimits) -> list[str]:
    """Return the parents that create queues by templates whose settings ``/scheduler`` does not show.

    The settings of a legacy template are visible in the first queue created from it. A flexible parent has several
    templates, and a created queue does not show from which of them its settings come.
    """
    shown = _legacy_templates(limits)
    return [path for path, queue in limits.queues.items() if queue.creation in _CREATION and path not in shown]


def _legacy_templates(limits: SchedulerLimits) -> dict[str, Mapping[str, float]]:
    """Return the settings of the first queue below each legacy parent, which are those of its template."""
    found: dict[str, Mapping[str, float]] = {}
    for queue in limits.queues.values():
        above = limits.queues.get(queue.parent) if queue.parent is not None else None
        if above is not None and queue.parent is not None and above.creation == "legacy":
            found.setdefault(queue.parent, queue.settings or {})
    return found
