"""Storage of the Capacity Scheduler's configuration: a file that the RM reads on request, or the RM's own store.

Both have the same interface. `read` returns all properties and a version mark; `write` changes some of them, and
detects other people's changes since that mark. Both are atomic: a file is replaced as a whole, and a store accepts or
refuses all changes of one call (``PUT /ws/v1/cluster/scheduler-conf``) together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import InputError
from harness.yarn.answers import Fields
from harness.yarn.capacity.properties import PREFIX, ConfigurationFile, parse_configuration
from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.files import ConfigStore, FileChanged, always
from harness.yarn.http import HttpClient
from harness.yarn.rmclient import RmClient

_PATH = "/ws/v1/cluster/scheduler-conf"
#: Upper limit of a store's properties, because a hostile answer may be endless.
MOST_PROPERTIES = 1_000_000


@dataclass(frozen=True, slots=True)
class Configuration:
    """All properties at one moment.

    ``mark`` distinguishes versions: the file's bytes, or the store's version number. ``contents``: name -> what stands
    between the tags in the file, where the value alone does not tell it (`ConfigurationFile.contents`).
    """

    values: Mapping[str, str]
    mark: Any
    contents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestoredValues:
    """What became of properties that were to be restored in a file that cannot be read as a whole.

    Parameters
    ----------
    restored
        Names of the properties that had a value to be replaced.
    missing
        Names of those that are not in the file. They may be in another one that it includes.
    """

    restored: tuple[str, ...]
    missing: tuple[str, ...]


class ConfigurationSource(ABC):
    """The storage of the properties. ``name`` is its name in messages."""

    name: str
    #: Called before the ResourceManager's own store is read or changed; raises if it belongs to another cluster.
    recognise: Callable[[], None] = staticmethod(always)

    @abstractmethod
    def read(self) -> Configuration:
        """Read all properties. Raises InputError, Unreachable."""

    @abstractmethod
    def write(
        self, changes: Mapping[str, str | None], before: Configuration, still: Callable[[], None] = always
    ) -> Configuration:
        """Set properties (None removes one) if nobody has changed the configuration since ``before``.

        Returns the new configuration. ``still`` is called just before the change, and raises if the properties must not
        be set any more. Raises FileChanged if somebody has changed the configuration, and Refused if the RM refuses the
        properties; nothing is changed then. Also raises InputError and Unreachable.
        """

    @abstractmethod
    def load(self, client: RmClient) -> None:
        """Make the RM load the written properties."""

    @abstractmethod
    def shown(self, configuration: Configuration, changes: Mapping[str, str | None]) -> tuple[bytes, bytes]:
        """Return the configuration before and after the changes as text, for a comparison by a person."""


class FileSource(ConfigurationSource):
    """``capacity-scheduler.xml``, local, over SFTP or WebHDFS; the RM reads it at ``refreshQueues``."""

    def __init__(self, store: ConfigStore) -> None:
        self.store, self.name = store, store.name

    def read(self) -> Configuration:
        """Read and parse the file."""
        data = self.store.read()
        return self._configuration(parse_configuration(data, source=self.name), data)

    @staticmethod
    def _configuration(file: ConfigurationFile, data: bytes) -> Configuration:
        return Configuration(file.values, data, file.contents)

    def _edited(
        self, file: ConfigurationFile, changes: Mapping[str, str | None], *, whole: bool = True
    ) -> Configuration:
        """Return the edited file, parsed, which shows that it reads back as intended. Raises InputError if not."""
        wanted = {name: value for name, value in {**file.values, **changes}.items() if value is not None}
        plain = {name: value if value is None else str(value) for name, value in changes.items()}
        for edit in (changes, plain):
            # The second edit writes values alone. If the file's encoding was changed, the bytes that once stood between
            # the tags (`PropertyText`) may be no text in the new encoding.
            after = file.edited(edit)
            try:
                parsed = parse_configuration(after, source=self.name, whole=whole)
                if dict(parsed.values) == wanted:
                    return self._configuration(parsed, after)
            except InputError:
                if edit is plain:
                    raise
        raise InputError(
            "the edited file does not read back as intended", where=self.name, hint="write the file plainly, in UTF-8"
        )

    def write(
        self, changes: Mapping[str, str | None], before: Configuration, still: Callable[[], None] = always
    ) -> Configuration:
        """Write the changes into the file; return the new configuration."""
        file = parse_configuration(before.mark, source=self.name)
        after = self._edited(file, changes)
        if after.mark != before.mark:
            self.store.write(after.mark, before=before.mark, still=still)
        return after

    def restore(
        self, values: Mapping[str, tuple[Collection[str], str | None]], still: Callable[[], None] = always
    ) -> RestoredValues:
        """Restore properties in a file that `read` refuses, as far as they still have one of certain values.

        Parameters
        ----------
        values
            Name -> the values to be replaced, and the value to restore (None: no such property).
        still
            Called just before the file is replaced; raises if it must not be any more.

        Raises
        ------
        InputError
            The file cannot be read or written, or is no XML document.
        """
        data = self.store.read()
        file = parse_configuration(data, source=self.name, whole=False)
        changes = {name: own for name, (written, own) in values.items() if file.values.get(name) in written}
        after = self._edited(file, changes, whole=False).mark
        if after != data:
            self.store.write(after, before=data, still=still)
        missing = [name for name, (written, own) in values.items() if name not in file.values and own not in written]
        return RestoredValues(tuple(changes), tuple(missing))

    def load(self, client: RmClient) -> None:
        """Make the RM read the file (``refreshQueues``)."""
        client.refresh_queues()

    def shown(self, configuration: Configuration, changes: Mapping[str, str | None]) -> tuple[bytes, bytes]:
        """Return the file before and after the changes."""
        file = parse_configuration(configuration.mark, source=self.name)
        return configuration.mark, self._edited(file, changes).mark


class StoreSource(ConfigurationSource):
    """The RM's own store (``yarn.scheduler.configuration.store.class`` memory, leveldb, zk or fs), over REST.

    A store cannot write only if it is unchanged, so its version is requested before and after a write: if it increases
    by more than one, somebody else has written, too. Other people's changes of other properties are kept; a change of
    one of the written properties raises `FileChanged`. For a Hadoop release without versions, all properties are
    compared instead.
    """

    def __init__(self, http: HttpClient) -> None:
        self.http, self.name = http, "the scheduler's configuration store"

    def read(self) -> Configuration:
        """Read the configuration from the RM."""
        self.recognise()
        base = self.http.current
        version = self._version()
        answer = self.http.request("GET", _PATH, repeatable=True)
        values: dict[str, str] = {}
        for entry in Fields({"answer": answer.document}, answer.url, "").objects("answer", "property"):
            if len(values) >= MOST_PROPERTIES:
                raise BadAnswer("properties without end", where=answer.url)
            values[entry.text("name")] = entry.text("value", "")
        if not any(name.startswith(f"{PREFIX}root.") for name in values):
            raise BadAnswer("no queue in the scheduler's configuration", where=answer.url)
        if self.http.current != base:
            # Another RM has answered than the recognised one, which has become a standby.
            self.recognise()
        return Configuration(values, version)

    def _version(self) -> int | None:
        """Return the store's version; None if this Hadoop release has no such call."""
        try:
            answer = self.http.request("GET", f"{_PATH}/version", repeatable=True)
        except Refused as error:
            if error.status == 404:
                return None
            raise
        # Since Hadoop 3.5 (Jersey 2) the number is an integer in an object; before, it is a text.
        fields = Fields(answer.document, answer.url, "answer")
        if isinstance(answer.document, dict) and "configversion" in answer.document:
            fields = Fields(answer.document["configversion"], answer.url, "answer.configversion")
        return fields.integer_or_text("versionID")

    def write(
        self, changes: Mapping[str, str | None], before: Configuration, still: Callable[[], None] = always
    ) -> Configuration:
        """Send those changes that differ from the properties in force; return the new configuration."""
        wanted = {name: value for name, value in changes.items() if before.values.get(name) != value}
        if not wanted:
            return before
        self.recognise()
        base, now = self.http.current, before
        # If the version is unchanged, the long configuration need not be read again.
        if before.mark is None or self._version() != before.mark:
            now = self.read()
            base = self.http.current
        if now.mark != before.mark or any(now.values.get(name) != before.values.get(name) for name in wanted):
            raise self._changed("since it was read; the next round starts from it")
        still()
        # Do not fail over to another RM, which may belong to another cluster.
        answer = self.http.request("PUT", _PATH, body=_body(wanted), repeatable=False, words=True, only=base)
        if "successfully" not in str(answer.document):
            raise BadAnswer(f"not taken: {str(answer.document)[:200]!r}", where=answer.url)
        if now.mark is not None and self._version() == now.mark + 1:
            values = {**now.values, **wanted}
            return Configuration({name: value for name, value in values.items() if value is not None}, now.mark + 1)
        after = self.read()
        wrong = [name for name, value in wanted.items() if after.values.get(name) != value]
        if wrong or now.mark is not None:
            what = f" ({wrong[0]} is {after.values.get(wrong[0])!r})" if wrong else ""
            raise self._changed(f"at the same moment{what}; what it has now is read, and written anew where it must be")
        return after

    def _changed(self, when: str) -> FileChanged:
        return FileChanged(f"somebody else changed it {when}", where=self.name, hint="look who else writes it")

    def load(self, client: RmClient) -> None:
        """No-op: the scheduler applies a change before it answers."""

    def shown(self, configuration: Configuration, changes: Mapping[str, str | None]) -> tuple[bytes, bytes]:
        """Return the configuration before and after the changes, as text."""
        after = {**configuration.values, **changes}

        def text(values: Mapping[str, str | None]) -> bytes:
            return "".join(f"{k} = {values[k]}\n" for k in sorted(values) if values[k] is not None).encode()

        return text(configuration.values), text(after)


def _body(changes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the body of the request, with the properties of each queue and the global properties."""
    queues: dict[str, list[dict[str, str | None]]] = {}
    for name, value in changes.items():
        if not name.startswith(f"{PREFIX}root."):
            raise InputError(f"{name} is not a property of a queue")
        path, _, key = name.removeprefix(PREFIX).rpartition(".")
        queues.setdefault(path, []).append({"key": key, "value": value})
    return {"update-queue": [{"queue-name": path, "params": {"entry": found}} for path, found in queues.items()]}


def open_source(client: RmClient, store: ConfigStore | None) -> ConfigurationSource:
    """Open the given file, or else the RM's store. Raises InputError if there is neither."""
    if store is not None:
        return FileSource(store)
    source = StoreSource(client.rest.http)
    try:
        source.read()
    except Refused as error:
        hint = "give capacity_file (its capacity-scheduler.xml), or set yarn.scheduler.configuration.store.class"
        raise InputError(
            f"the Capacity Scheduler's configuration cannot be changed over REST ({error.what})",
            where=error.where,
            hint="put this user into yarn.admin.acl" if error.status in (401, 403) else hint,
        ) from None
    return source
