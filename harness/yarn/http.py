"""JSON over HTTP to one of several equal servers: timeouts, retries of repeatable requests, failover, TLS, SPNEGO.

YARN's endpoints are in harness.yarn.rest. Redirects of standby ResourceManagers are handled here, because they are the
same for every path: a 307 with ``Location`` names the active RM, and a 307 with ``Refresh`` means that there is none.
"""

from __future__ import annotations

import html
import http.client
import json
import logging
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit

import requests
import urllib3

from harness.base.debug import Timer, shown
from harness.base.errors import CallError
from harness.yarn.errors import BadAnswer, NoActiveRm, Refused, Unreachable, well_formed
from harness.yarn.kerberos import Login, Spnego, hint_of, wants_ticket
from harness.yarn.session import PEM_HINT, Session, Watch, tls_trouble, tls_words

#: Exceptions of the HTTP stack that are caused by the other side or the network.
_TRANSPORT_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)
#: Java exceptions that mean that the server did not carry out the request.
_NOT_ME = ("StandbyException", "RetriableException")
_RETRIED_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_TEXT_LIMIT = 300
#: Factor by which a streamed answer may be longer than an answer that is stored in memory.
STREAMED = 16
#: A date as in RFC 9110.
_DATE = re.compile(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT")
#: The beginning of a standby's plain-text answer.
_STANDBY_WORDS = (b"This is standby RM.", b"Can't find any active RM", b"There is no active RM right now")
_LONGEST_WORDS = 64
#: Patterns of the reason in an error page of Jetty: since Hadoop 3.3, and before.
_PAGE_REASONS = (
    re.compile(r"<th>MESSAGE:</th>\s*<td>(.*?)</td>", re.DOTALL),
    re.compile(r"Reason:\s*<pre>(.*?)</pre>", re.DOTALL),
)
_REASONS = (r"\[Errno -?\d+\] ([^'\")]+)", r"\((?:read|connect) timeout=[^)]*\)")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Options of requests. Times in seconds; `deadline_s` bounds a call with all its retries and failovers.

    `attempts` counts rounds over all servers. `user` is sent as ``user.name`` (Hadoop's simple authentication);
    ``auth="spnego"`` uses Kerberos tickets instead: tickets of `principal` from its `keytab`, or else the process' own.
    `ca_file` is the authority that signed the server's certificate (None: the system's), `cert_file` and `key_file`
    this client's own certificate and key. The environment's proxies and ~/.netrc are not used. `max_answer_bytes`
    bounds an answer that is held as a whole, which takes nine times as much memory once it is parsed; a streamed one
    (`HttpClient.request`, ``reader``) may be `STREAMED` times as long.
    """

    connect_timeout_s: float = 3.0
    read_timeout_s: float = 20.0
    deadline_s: float = 45.0
    attempts: int = 4
    backoff_s: float = 0.25
    max_answer_bytes: int = 64 << 20
    user: str | None = None
    auth: Literal["simple", "spnego"] = "simple"
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    principal: str | None = None
    keytab: str | None = None

    def __post_init__(self) -> None:
        for name in ("connect_timeout_s", "read_timeout_s", "deadline_s"):
            value = getattr(self, name)
            if not 0 < value <= 86_400:
                raise CallError(f"{name} is {value}", hint="give seconds between 0 and 86400")
        if self.attempts < 1 or self.backoff_s < 0:
            raise CallError("attempts must be at least 1 and backoff_s not negative")
        if self.auth not in ("simple", "spnego"):
            raise CallError(f"unknown authentication {self.auth!r}", hint="use simple or spnego")
        if self.auth == "simple" and (self.principal or self.keytab):
            raise CallError("a principal or keytab with auth simple", hint="use auth spnego")
        check_certificates(self)
        if self.login is not None:
            self.login.check()

    @property
    def login(self) -> Login | None:
        """Return the Kerberos login; None: without Kerberos."""
        return Login(self.principal, self.keytab) if self.auth == "spnego" else None


def check_certificates(options: HttpOptions) -> None:
    """Raise CallError for certificate files that do not exist, or contain no certificate or key."""
    for name in ("ca_file", "cert_file", "key_file"):
        path = getattr(options, name)
        if path is not None and not os.path.isfile(path):
            raise CallError(f"{name}: no such file: {path}")
    if options.key_file and not options.cert_file:
        raise CallError("key_file without cert_file", hint="give both")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if options.ca_file:
            context.load_verify_locations(options.ca_file)
    except OSError as error:
        raise CallError(f"ca_file: {tls_words(error)}", where=options.ca_file, hint=PEM_HINT) from None
    try:
        if options.cert_file:
            # For a key with a password, the library would prompt on the terminal.
            context.load_cert_chain(options.cert_file, options.key_file, password=lambda: b"")
    except OSError as error:
        raise CallError(f"cert_file, key_file: {tls_words(error)}", where=options.cert_file, hint=PEM_HINT) from None


def open_session(options: HttpOptions) -> Session:
    """Open a session with the options' certificates and authentication, ignoring the environment. Raises CallError."""
    session = Session()
    session.trust_env = False
    if options.ca_file:
        session.verify = options.ca_file
    if options.cert_file:
        session.cert = (options.cert_file, options.key_file) if options.key_file else options.cert_file
    if options.login is not None:
        session.auth = Spnego(options.login)
    return session


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer: the requested address, the status, and the JSON document (None: the body is empty)."""

    url: str
    status: int
    document: Any
    headers: Mapping[str, str]


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call, whichever address it is sent to.

    Parameters
    ----------
    method, path, params, body
        What is asked.
    end
        Until when an answer is waited for, on the client's clock.
    words
        Whether the answer is plain text.
    reader
        What makes the document of an answer as it comes; None: it is JSON as a whole.
    most_bytes
        The longest answer that makes sense; None: as the options say.
    """

    method: str
    path: str
    params: Mapping[str, str] | None
    body: Any
    end: float
    words: bool
    reader: Reader | None
    most_bytes: int | None


class _Heard:
    """One request and the beginning of its answer, for the debug log."""

    #: Number of bytes of an answer that are kept.
    MOST = 2000

    def __init__(self, method: str, url: str, query: Mapping[str, str], body: object) -> None:
        asked = f" {json.dumps(body)}" if body is not None else ""
        self.asked = f"{method} {url}{f' {dict(query)}' if query else ''}{shown(asked)}"
        self.timer, self.beginning, self.size = Timer(), b"", 0

    def chunks(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.size += len(chunk)
            self.beginning += chunk[: self.MOST - len(self.beginning)]
            yield chunk

    def log(self, response: requests.Response) -> None:
        # Headers are not logged, because they contain cookies and tickets.
        text = shown(self.beginning)
        _LOG.debug("%s: HTTP %s, %s bytes in %s: %s", self.asked, response.status_code, self.size, self.timer, text)


def _nothing_heard(heard: _Heard | None, error: BaseException) -> None:
    if heard is not None:
        _LOG.debug("%s: no answer after %s: %s", heard.asked, heard.timer, error)


#: Parses an answer's bytes as they arrive (second argument: address for errors). Raises BadAnswer.
Reader = Callable[[Iterator[bytes], str], Any]


class _Failed(Exception):
    """A request to one server failed.

    `unsent`: whether the server certainly did not carry out the request, so that any request may be sent to another
    server. `active`: the active server that it named (None: it named none).
    """

    def __init__(self, error: Unreachable | Refused, *, unsent: bool, active: str | None = None) -> None:
        super().__init__(error.line())
        self.error, self.unsent, self.active = error, unsent, active


#: Paths of the RM's own API at the end of an address, which every request adds by itself.
_OWN_PATHS = re.compile(r"(?:/ws)?/v1/cluster$|/ws/v1$|/ws$|(?<!gateway)/cluster$")
#: A proxy's path: segments of plain characters.
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")
#: Knox offers the RM's REST API under this name, without the RM's /ws prefix.
_KNOX = "/resourcemanager"


def _address_of(base: str, path: str) -> str:
    """Return the URL of a path of the RM, at the RM itself or behind a proxy."""
    return base + (path.removeprefix("/ws") if base.endswith(_KNOX) else path)


def base_url(text: str) -> str:
    """Convert ``host``, ``host:port`` or a URL to ``http://host:port`` (default port 8088, 8090 for https).

    A path before ``/ws/v1/cluster`` is kept, because it belongs to a proxy in front of the RM, such as Knox
    (``https://HOST:8443/gateway/default/resourcemanager``).

    Raises CallError for anything else: other schemes, credentials in the address, control characters.
    """
    given = text.strip()
    if not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", given):
        given = f"http://{given}"
    hint = "give it as http://HOST:PORT or https://HOST:PORT"
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        # Do not show the library's message, which may quote a part of a password. In a complete address with its
        # scheme, passwords are recognised and hidden.
        raise CallError(f"{given!r} is not an address: its host or its port is not valid", hint=hint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CallError(f"{given!r} is not an address of a ResourceManager", hint=hint)
    if parts.username is not None or parts.password is not None:
        raise CallError("an address with a user or password in it", where=parts.hostname, hint=hint)
    if parts.query or parts.fragment:
        raise CallError(f"{text!r} has more than a host, a port and a path", hint=hint)
    prefix = _OWN_PATHS.sub("", parts.path.rstrip("/"))
    if not _PREFIX.fullmatch(prefix) or "/../" in f"{prefix}/":
        raise CallError(f"{text!r} has a path that is none of a proxy", hint=hint)
    if not re.fullmatch(r"[A-Za-z0-9_.:%-]+", parts.hostname) or port == 0:
        raise CallError(f"{text!r} is not an address of a ResourceManager", hint=hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or (8090 if parts.scheme == 'https' else 8088)}{prefix}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT] + "..."


def _reason(error: BaseException) -> str:
    """Return the innermost message of a chain of library exceptions.

    An example is "Connection refused".
    """
    text = str(error)
    for pattern in _REASONS:
        if found := re.search(pattern, text):
            return found.group(found.lastindex or 0).strip()
    return _short(text) or type(error).__name__


class HttpClient:
    """Send requests to the servers in `bases` (in the form of `base_url`), first to the one that answered last.

    `accept`: the accepted media types. `clock` and `sleep` can be replaced in tests. Not thread-safe.
    """

    def __init__(
        self,
        bases: Sequence[str],
        options: HttpOptions | None = None,
        *,
        accept: str = "application/json",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not bases:
            raise CallError("no address to ask", hint="give at least one")
        self.options = options or HttpOptions()
        self._configured = [base_url(base) for base in bases]
        self._bases = list(dict.fromkeys(self._configured))
        self._current = 0
        self._clock, self._sleep = clock, sleep
        self._session = open_session(self.options)
        self._session.headers.update({"Accept": accept, "Accept-Encoding": "identity"})

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    @property
    def current(self) -> str:
        """Return the address to which the next request goes first."""
        return self._bases[self._current]

    @property
    def bases(self) -> tuple[str, ...]:
        """Return all known addresses: the configured ones, and those that a standby named."""
        return tuple(self._bases)

    def prefer(self, base: str) -> None:
        """Send requests to this address (one of `bases`) first from now on."""
        self._current = self._bases.index(base)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        repeatable: bool,
        only: str | None = None,
        words: bool = False,
        reader: Reader | None = None,
        most_bytes: int | None = None,
    ) -> Answer:
        """Send one request and return its answer.

        Parameters
        ----------
        method, path, params, body
            The request: HTTP method, path, query parameters, and a body that is sent as JSON.
        repeatable
            Whether sending the request twice has the same effect as sending it once. Other requests are only sent again
            if the server certainly did not carry them out.
        only
            Send the request to this address, without failover.
        words
            Whether the answer is plain text, which becomes the document.
        reader
            Parses the answer as it arrives (None: the complete answer is parsed as JSON).
        most_bytes
            Maximum size of the answer (None: from the options).

        Raises
        ------
        Unreachable, NoActiveRm, Refused, BadAnswer
            The request failed, or its answer is invalid.
        """
        end = self._clock() + self.options.deadline_s
        call = _Call(
            method=method,
            path=path,
            params=params,
            body=body,
            end=end,
            words=words,
            reader=reader,
            most_bytes=most_bytes,
        )
        delay = self.options.backoff_s
        for attempt in range(self.options.attempts):
            if attempt:
                if self._clock() + delay >= end:
                    break
                self._sleep(delay)
                delay *= 2
            tried: set[str] = set()
            while (base := only or self.current) not in tried:
                tried.add(base)
                try:
                    return self._once(base, call)
                except _Failed as failed:
                    last = failed
                if not (repeatable or last.unsent):
                    raise last.error
                if only is None:
                    self._turn(base, last.active)
                if self._clock() >= end:
                    break
        raise last.error

    def _turn(self, base: str, active: str | None) -> None:
        """After `base` failed, switch to the active server that it named, or else to the next in the list."""
        if active is not None and active != base:
            if active not in self._bases and len(self._configured) == 1:
                # The host names that RMs use among themselves may not be valid from here, so follow them only if there
                # is no alternative.
                self._bases = [*self._configured, active]
            if active in self._bases:
                self._current = self._bases.index(active)
                return
        self._current = (self._bases.index(base) + 1) % len(self._bases)

    def _once(self, base: str, call: _Call) -> Answer:
        left = max(0.05, call.end - self._clock())
        with self._session.within(left) as watch:
            try:
                answer = self._exchange(base, call, watch)
            except (_Failed, BadAnswer):
                if not watch.late:
                    raise
            else:
                if not watch.late:
                    return answer
        raise _Failed(self._late(base + call.path), unsent=not watch.sent)

    def _exchange(self, base: str, call: _Call, watch: Watch) -> Answer:
        query = dict(call.params or {})
        if self.options.user is not None and self.options.auth == "simple":
            query["user.name"] = self.options.user
        url = _address_of(base, call.path)
        left = max(0.05, call.end - self._clock())
        heard = _Heard(call.method, url, query, call.body) if _LOG.isEnabledFor(logging.DEBUG) else None
        try:
            response = self._session.request(
                call.method,
                url,
                params=query,
                data=None if call.body is None else json.dumps(call.body).encode(),
                headers=None if call.body is None else {"Content-Type": "application/json"},
                timeout=(min(self.options.connect_timeout_s, left), min(self.options.read_timeout_s, left)),
                allow_redirects=False,
                stream=True,
            )
        except Unreachable as error:
            _nothing_heard(heard, error)
            # There is no ticket, and the server has refused the request without one.
            raise _Failed(error, unsent=True) from None
        except _TRANSPORT_ERRORS as error:
            _nothing_heard(heard, error)
            if (trouble := tls_trouble(error, base)) is not None:
                raise _Failed(trouble, unsent=not watch.sent) from None
            # If the connection failed before it was established, nothing was sent.
            raise _Failed(self._unreachable(base, error), unsent=not watch.sent) from None
        except (ValueError, AttributeError) as error:
            # Malformed header lines and addresses appear as these exceptions.
            raise BadAnswer(f"an answer that is not HTTP: {_reason(error)}", where=url) from None
        try:
            most = self.options.max_answer_bytes * (1 if call.reader is None else STREAMED)
            most = most if call.most_bytes is None else min(most, call.most_bytes)
            chunks = self._chunks(response, url, call.end, most)
            if heard is not None:
                chunks = heard.chunks(chunks)
            if call.reader is not None and 200 <= response.status_code < 300:
                document = call.reader(_not_of_standby(chunks, base), url)
                return Answer(url, response.status_code, document, response.headers)
            data = b"".join(chunks)
            return self._judge(response, base, url, data, call.words)
        finally:
            response.close()
            if heard is not None:
                heard.log(response)

    def _late(self, url: str) -> Unreachable:
        return Unreachable(f"no answer in time: not complete after {self.options.deadline_s:g} s", where=url)

    def _unreachable(self, base: str, error: BaseException) -> Unreachable:
        return Unreachable(
            f"no answer: {_reason(error)}",
            where=base,
            hint="check that the ResourceManager runs and the address is right",
        )

    def _chunks(self, response: requests.Response, url: str, end: float, most: int) -> Iterator[bytes]:
        """Yield the answer's body as it arrives, at most this many bytes."""
        size = 0
        try:
            # read1 returns the available bytes; iter_content would wait for a full block, past the deadline.
            while chunk := response.raw.read1(1 << 16, decode_content=True):
                size += len(chunk)
                if size > most:
                    raise BadAnswer(f"an answer of more than {most} bytes", where=url)
                if self._clock() > end:
                    raise _Failed(self._late(url), unsent=False)
                yield chunk
        except _TRANSPORT_ERRORS as error:
            raise _Failed(Unreachable(f"the answer was cut off: {_reason(error)}", where=url), unsent=False) from None

    def _judge(self, response: requests.Response, base: str, url: str, data: bytes, words: bool) -> Answer:
        status = response.status_code
        if 300 <= status < 400:
            raise self._standby(response, base, url)
        if status in (200, 503):
            _check_standby(data, base)
        if 200 <= status < 300:
            if words:
                return Answer(url, status, well_formed(data.decode("utf-8", "replace")), response.headers)
            document = None if not data.strip() else parse_json(data, url)
            return Answer(url, status, document, response.headers)
        exception, message = remote_exception(data, url)
        page = "" if exception or message else page_reason(data)
        if words and not exception and not message and not page:
            message = _short(well_formed(data[:4096].decode("utf-8", "replace")))
        text = f"HTTP {status}"
        if exception or message:
            text += f" {exception}: {message}" if exception and message else f" {exception or message}"
        elif response.reason:
            text += f" {_short(response.reason)}"
        if page and page.lower() not in text.lower():
            text += f": {page}"
        hint = hint_of(text)
        if status == 401 and hint is None:
            hint = self._authenticate(response)
        refused = Refused(text, where=url, hint=hint, status=status, exception=exception)
        if exception.endswith(_NOT_ME):
            raise _Failed(NoActiveRm(text, where=base), unsent=True)
        # An answer with a Java exception comes from the RM itself and is final, even with such a status (a move to an
        # unknown queue is a 503).
        if status in _RETRIED_STATUS and not exception:
            raise _Failed(refused, unsent=False)
        raise refused

    def _authenticate(self, response: requests.Response) -> str:
        if not wants_ticket(response):
            return "give a user"
        if self.options.auth == "spnego":
            return "see that the server's HTTP principal and keytab fit the name that it is asked by, and its log"
        return "authenticate with Kerberos (http.kerberos, or --principal and --keytab)"

    def _standby(self, response: requests.Response, base: str, url: str) -> Exception:
        location = response.headers.get("Location")
        if location is None:
            return _Failed(NoActiveRm("on standby, and it knows of no active ResourceManager", where=base), unsent=True)
        try:
            parts = urlsplit(location)
            active = base_url(f"{parts.scheme}://{parts.netloc}") if parts.scheme and parts.netloc else None
        except (ValueError, CallError):
            active = None
        if active is None:
            return BadAnswer(f"redirected to {_short(location)!r}, which is no ResourceManager's address", where=url)
        if base.startswith("https:") and not active.startswith("https:"):
            return BadAnswer(f"redirected from https to {active}", where=url, hint="switch https on for every RM")
        if active == base or urlsplit(active).netloc == urlsplit(base).netloc:
            return Refused(
                f"redirected to {_short(location)}", where=url, hint="check the path", status=response.status_code
            )
        return _Failed(NoActiveRm(f"on standby; it names {active} as active", where=base), unsent=True, active=active)


def _check_standby(data: bytes, base: str) -> None:
    """Raise if the answer is a standby's plain text with status 200 (RMWebAppFilter.doFilter)."""
    if data.lstrip().startswith(_STANDBY_WORDS):
        words = _short(" ".join(data[:300].decode("utf-8", "replace").split()))
        raise _Failed(NoActiveRm(f"on standby: {words}", where=base), unsent=True)


def _not_of_standby(chunks: Iterator[bytes], base: str) -> Iterator[bytes]:
    """Yield the chunks of an answer; raise as `_check_standby` does if it begins like a standby's."""
    begun = b""
    for chunk in chunks:
        begun += chunk
        # All phrases of a standby are shorter than this, and a JSON document is recognised by its first byte.
        if len(begun) >= _LONGEST_WORDS or begun.lstrip()[:1] in (b"{", b"["):
            break
    _check_standby(begun, base)
    yield begun
    yield from chunks


def page_reason(data: bytes) -> str:
    """Return the reason in an error page of Hadoop's web server, or in a plain text; '' if it has none."""
    text = well_formed(data[:65536].decode("utf-8", "replace"))
    if not text.lstrip().startswith("<"):
        return "" if text.lstrip()[:1] in ("{", "[") else _short(text)
    for pattern in _PAGE_REASONS:
        if (found := pattern.search(text)) is not None:
            return _short(html.unescape(re.sub(r"<[^>]*>", " ", found[1])))
    return ""


def date_of(headers: Mapping[str, str]) -> float | None:
    """Return the server's clock when it answered, seconds since 1970; None without a valid ``Date`` header.

    Hadoop's web server sends the header twice, and the HTTP library joins both with a comma; the first one counts.
    """
    found = _DATE.search(headers.get("Date", ""))
    try:
        return None if found is None else parsedate_to_datetime(found[0]).timestamp()
    except ValueError:
        return None


def parse_json(data: bytes, where: str) -> Any:
    """Parse JSON bytes. Raises BadAnswer for invalid content (HTML, truncated or too deeply nested documents)."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError, MemoryError) as error:
        start = _short(data[:60].decode("utf-8", "replace"))
        if data.lstrip()[:1] == b"<":
            raise BadAnswer(f"HTML or XML instead of JSON: {start!r}", where=where) from None
        raise BadAnswer(f"no JSON ({_short(str(error))}): {start!r}", where=where) from None


def remote_exception(data: bytes, where: str) -> tuple[str, str]:
    """Return class (without package) and message of ``{"RemoteException": {...}}``.

    Returns empty texts for any other content.
    """
    try:
        document = parse_json(data, where)
        inner = document["RemoteException"]
        exception = inner.get("exception", "")
        message = inner.get("message", "")
    except (BadAnswer, KeyError, TypeError, AttributeError):
        return "", ""
    if not isinstance(exception, str) or not isinstance(message, str):
        return "", ""
    # Keep only the first line of a message like "java.lang.Exception: app with id ..." with a stack trace.
    exception, message = well_formed(exception), well_formed(message)
    message = next((line for line in message.splitlines() if line.strip()), "")
    message = re.sub(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ", "", message)
    return exception.rpartition(".")[2], _short(message)
