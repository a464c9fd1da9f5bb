"""Strictly reads YAML files that users write: returns plain data and the line of each key.

Refused with file and line: a file that is not YAML, cyclic anchors, aliases that would blow up, duplicate keys, keys
that are not text, more than one document, files of unreasonable size. `validated` turns pydantic's findings into the
one line that users see.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

import yaml
import yaml.composer
import yaml.constructor
import yaml.resolver
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.base.errors import InputError, nearest
from harness.base.files import read_text

MAX_BYTES = 10_000_000
#: Maximum number of values in a document with its aliases expanded.
MAX_VALUES = 200_000

KeyPath = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)

#: Larger times are mistakes: no experiment is that long.
LONGEST_S = 1e9
Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]


class Strict(BaseModel):
    """A strict model: unknown keys are errors; texts and numbers are not converted. ``keys_page`` lists the keys."""

    keys_page: ClassVar[str] = "docs/reference/experiment-file.md"
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The content of one file: ``data`` (mappings, lists, scalars) and the line, from 1, of each key path."""

    file: str
    data: Any
    lines: Mapping[KeyPath, int]

    def where(self, path: KeyPath = ()) -> str:
        """Return ``file:line`` of the longest known prefix of a key path."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return f"{self.file}:{self.lines[path[:length]]}"
        return self.file


_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset(_TAG + kind for kind in ("null", "bool", "int", "float", "str", "timestamp"))


class _Walker:
    """Builds plain data from a composed node graph, refusing content that is certainly a mistake."""

    def __init__(self, file: str) -> None:
        self.file, self.lines, self.values = file, {}, 0  # type: str, dict[KeyPath, int], int
        self.constructor = yaml.constructor.SafeConstructor()
        self.open: set[int] = set()

    def fail(self, node: yaml.Node, what: str, hint: str) -> InputError:
        return InputError(what, where=f"{self.file}:{node.start_mark.line + 1}", hint=hint)

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self.values += 1
        if self.values > MAX_VALUES:
            raise self.fail(node, f"more than {MAX_VALUES:,} values", "use fewer, or fewer nested aliases")
        if id(node) in self.open:
            raise self.fail(node, "an anchor that contains itself", "write the value out, or remove the alias")
        self.lines.setdefault(path, node.start_mark.line + 1)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.build(item, (*path, at)) for at, item in enumerate(node.value)]
            return self._scalar(node)
        finally:
            self.open.discard(id(node))

    def _scalar(self, node: yaml.Node) -> Any:
        if node.tag not in _SCALARS:
            raise self.fail(node, f"a value of type {node.tag!r}", "use plain numbers, texts, lists and mappings")
        if node.tag in (_TAG + "str", _TAG + "timestamp"):
            return node.value
        try:
            return self.constructor.construct_object(node)
        except (ValueError, yaml.YAMLError) as error:
            raise self.fail(node, f"cannot read {node.value[:40]!r}: {error}", "write a plain value") from None

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.fail(key_node, "a key that is not text", "use names as keys")
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise self.fail(key_node, "merge keys (<<) are not supported", "write the keys out")
            key = key_node.value
            if key in found:
                raise self.fail(key_node, f"key {key!r} appears twice", "keep one of them")
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            found[key] = self.build(value_node, (*path, key))
        return found


try:
    from yaml.cyaml import CParser  # type: ignore[attr-defined]
except ImportError:  # a build of PyYAML without libyaml
    _QuickLoader: Any = None
else:

    class _QuickLoader(  # type: ignore[no-redef]
        yaml.composer.Composer, CParser, yaml.constructor.SafeConstructor, yaml.resolver.Resolver
    ):
        """libyaml's parser below PyYAML's composer in Python.

        libyaml's own composer recurses on the C stack, so a deeply nested file would crash the process.
        """

        def __init__(self, stream: str) -> None:
            CParser.__init__(self, stream)
            yaml.composer.Composer.__init__(self)
            yaml.constructor.SafeConstructor.__init__(self)
            yaml.resolver.Resolver.__init__(self)


#: Texts for which libyaml and PyYAML differ: tabs between tokens, question marks and tags within braces, byte order
#: marks except at the beginning, comments directly before a block of text.
_READ_DIFFERENTLY = re.compile(r"[\t?!\ufeff]|[|>][0-9+-]*#")


def _composed(text: str) -> yaml.Node | None:
    """Return the document's nodes as PyYAML's own parser reads them, with its messages for invalid YAML.

    libyaml is three times as fast, but accepts a few documents that PyYAML refuses; texts that could be one of these
    are parsed by PyYAML.
    """
    if _QuickLoader is not None and not _READ_DIFFERENTLY.search(text):
        try:
            return yaml.compose(text, Loader=_QuickLoader)
        except yaml.YAMLError:
            pass
    return yaml.compose(text, Loader=yaml.SafeLoader)


def parse_yaml(text: str, file: str) -> YamlDocument:
    """Return the plain data of one YAML document.

    Raises InputError with ``file:line``.
    """
    walker = _Walker(file)
    try:
        node = _composed(text)
        if node is None:
            raise InputError("the file is empty", where=file, hint="write a YAML document into it")
        data = walker.build(node, ())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark is not None else file
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        line = text.splitlines()[mark.line] if mark is not None and mark.line < len(text.splitlines()) else ""
        # An IPv6 address within braces or brackets.
        colon = _COLON_VALUE.search(line)
        hint = f'put the value in quotes: "{colon[1] or colon[2]}"' if colon else "correct the syntax there"
        raise InputError(f"not valid YAML: {problem}", where=where, hint=hint) from None
    except RecursionError:
        raise InputError("nested too deeply", where=file, hint="flatten the file") from None
    return YamlDocument(file, data, walker.lines)


def read_yaml(path: Path) -> YamlDocument:
    """Return the plain data of one YAML file.

    Raises InputError with ``file:line``.
    """
    return parse_yaml(read_text(path, MAX_BYTES), str(path))


def validated(model: type[M], document: YamlDocument, *, data: object = None, at: KeyPath = ()) -> M:
    """Return `document`, or `data` at key path `at` within it, as a model.

    Raises InputError with the file, the line, the key path and the number of other errors.
    """
    try:
        return model.model_validate(document.data if data is None else data)
    except ValidationError as error:
        raise input_error(error, document, at, model) from None
    except RecursionError:
        raise InputError("nested too deeply", where=document.where(at), hint="flatten the file") from None


def keys_at(model: type[BaseModel], location: KeyPath) -> list[str]:
    """Return the keys that are allowed in place of the last part of a location."""
    here: list[Any] = [model]
    for part in location[:-1]:
        if all(get_origin(one) is dict for one in here):
            # A name that the user chose, in a mapping: it may equal a key.
            here = [found for one in here for found in _models_in(get_args(one)[1])]
            continue
        inner = [one.model_fields[str(part)].annotation for one in here if str(part) in _keys_of(one)]
        if inner:
            here = [found for annotation in inner for found in _models_in(annotation)]
    return [key for one in here for key in _keys_of(one)]


def _keys_of(one: object) -> list[str]:
    return list(getattr(one, "model_fields", ()))


def _models_in(annotation: object) -> list[Any]:
    """Return the models in an annotation, and its mappings of models."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is dict:
        return [annotation] if _models_in(get_args(annotation)[1]) else []
    return [found for part in get_args(annotation) for found in _models_in(part)]


def _mistypes(found: Mapping[str, Any], lacking: Mapping[str, Any]) -> bool:
    """Return whether an unknown key is a misspelling of a missing one beside it, so that two errors have one cause."""
    if (found["type"], lacking["type"]) != ("extra_forbidden", "missing") or found["loc"][:-1] != lacking["loc"][:-1]:
        return False
    return bool(nearest(str(found["loc"][-1]), [str(lacking["loc"][-1])]))


#: A number with an exponent that YAML 1.1 reads as text: it needs a point, and a sign after the e.
_COLON_VALUE = re.compile(r"""[:{,]\s*(?:(:[^\s,}\]"']+)|(\[:[^\s,}\]"']+\]))""")
_EXPONENT = re.compile(r"([+-]?[0-9]+)(\.[0-9]*)?[eE]([+-]?)([0-9]+)")


def _number_as_text(kind: str, text: str) -> str:
    """Return how YAML needs a number written that it read as text; "" if the text is no number."""
    found = _EXPONENT.fullmatch(text.strip())
    if found is None or not kind.startswith(("float", "int", "decimal")):
        return ""
    whole, fraction, sign, exponent = found.groups()
    if kind.startswith("int"):
        value = float(text)
        return str(int(value)) if value.is_integer() else ""
    return f"{whole}{fraction if fraction and len(fraction) > 1 else '.0'}e{sign or '+'}{exponent}"


def input_error(
    error: ValidationError, document: YamlDocument, at: KeyPath = (), model: type[BaseModel] | None = None
) -> InputError:
    """Convert pydantic's first error to the line for users; ``model``: for the nearest name of a mistyped key."""
    findings = error.errors(include_url=False, include_context=False)
    first = next((one for one in findings if _mistypes(one, findings[0])), findings[0])
    location: KeyPath = (*at, *first["loc"])
    # Names of union members are pydantic's, not keys of the file.
    shown = [str(part) for part in location if not str(part).startswith(("function-", "tagged-"))]
    kind, message = first["type"], first["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    page = getattr(model, "keys_page", Strict.keys_page)
    hint = f"correct it ({page} lists the keys)"
    if kind == "extra_forbidden":
        close = nearest(str(location[-1]), keys_at(model, first["loc"])) if model is not None else ""
        message, hint = "unknown key", f"did you mean {close!r}?" if close else "remove it or correct its spelling"
    elif kind == "missing":
        message, hint = "a key is missing", "add it"
    elif isinstance(first.get("input"), str) and (number := _number_as_text(kind, first["input"])):
        message = f"{first['input']} is text in YAML, not a number"
        hint = f"write {number}"
    elif kind.startswith(("finite", "greater", "less")) and not isinstance(first.get("input"), dict | list):
        message += f" (it is {str(first.get('input'))[:40]})"
    others = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    name = ".".join(shown) or "the file"
    return InputError(f"{name}: {message}{others}", where=document.where(location), hint=hint)
