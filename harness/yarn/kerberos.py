"""Kerberos for REST and RPC: automatically renewed tickets from a keytab, SPNEGO, and the SASL of Hadoop's RPC.

Tickets from a keytab are kept in this process' memory. MIT's library renews them after half of their lifetime, and
keeps using the old ones while no KDC answers. The package gssapi is imported only when it is needed.
"""

from __future__ import annotations

import base64
import os
import re
import socket
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

from harness.base.errors import CallError
from harness.yarn.errors import BadAnswer, Unreachable

_SPNEGO = "1.3.6.1.5.5.2"
_KRB5 = "1.2.840.113554.1.2.2"
#: The security layers of RFC 4752: none, integrity, privacy.
_PLAIN, _INTEGRITY, _PRIVACY = 1, 2, 4
_BODY_BYTES = 1 << 16


class NoTicket(Unreachable):
    """Kerberos provides no ticket for this server at present. A later attempt may succeed."""


#: Message of MIT's library -> hint; the first match counts.
_HINTS = (
    ("Cannot contact any KDC|Cannot find KDC|Cannot resolve", "check that the KDC runs, and its address in krb5.conf"),
    ("(?i)clock skew|not yet valid", "set the clocks of this machine and the KDC by NTP"),
    ("Client '.*' not found|CLIENT_NOT_FOUND", "give the principal as the KDC has it"),
    ("Preauthentication failed|integrity check failed", "the principal's key has changed: export its keytab anew"),
    ("Server .* not found", "ask the server by the name in its principal, and see that the KDC has that principal"),
    ("expired|No Kerberos credentials|No credentials cache", "get a ticket with kinit, or give principal and keytab"),
)


@dataclass(frozen=True, slots=True)
class Login:
    """The source of tickets: `principal` and its `keytab`; without both, the process' ticket cache (kinit)."""

    principal: str | None = None
    keytab: str | None = None

    def check(self) -> None:
        """Raise CallError for an unusable keytab, and if the package gssapi is missing."""
        if (self.principal is None) != (self.keytab is None):
            raise CallError("principal and keytab go together", hint="give both, or neither and kinit")
        if self.keytab is not None and not os.path.isfile(self.keytab):
            raise CallError("no such keytab", where=self.keytab, hint="give the path of the principal's keytab")
        if self.keytab is not None and not os.access(self.keytab, os.R_OK):
            hint = "let the user that yarnfair runs as read it (chown, mode 0400)"
            raise CallError("the keytab cannot be read", where=self.keytab, hint=hint)
        _gssapi()

    @property
    def user(self) -> str | None:
        """Return the principal's first part: Hadoop's name of the user, unless its rules differ."""
        return None if self.principal is None else re.split("[/@]", self.principal)[0]

    def context(self, service: str, host: str, mechanism: str, flags: tuple[str, ...] = ()) -> Any:
        """Begin a security context with ``service@host``. Raises NoTicket."""
        gssapi = _gssapi()
        return gssapi.SecurityContext(
            name=gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service),
            creds=self._credentials(f"{service}@{host}"),
            mech=gssapi.OID.from_int_seq(mechanism),
            flags=[getattr(gssapi.RequirementFlag, flag) for flag in flags],
            usage="initiate",
        )

    def _credentials(self, where: str, cache: str = "") -> Any:
        gssapi = _gssapi()
        if self.keytab is None:
            return None
        name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)
        # All clients of this process with the same principal and keytab share one cache.
        cache = cache or f"MEMORY:yarnfair-{zlib.crc32(f'{self.principal} {self.keytab}'.encode()):x}"
        store = {"client_keytab": f"FILE:{self.keytab}", "ccache": cache}
        try:
            found = gssapi.Credentials(name=name, usage="initiate", store=store)
            # If the tickets have expired and there are no new ones, only a query of their lifetime reveals it.
            _ = found.lifetime
            return found
        except gssapi.exceptions.ExpiredCredentialsError as error:
            if cache.endswith("-anew"):
                raise self.trouble(error, where) from None
            # The library reports only that the old tickets have expired. With an empty cache, it reports why it gets no
            # new ones.
            return self._credentials(where, f"{cache}-anew")
        except gssapi.exceptions.GSSError as error:
            raise self.trouble(error, where) from None

    def trouble(self, error: object, where: str) -> NoTicket:
        """Explain in one line why there is no ticket for a server."""
        said = _said(error)
        if self.keytab is not None and "No credentials cache" in said:
            what = f"no Kerberos ticket: {self.keytab} has no key of {self.principal}"
            return NoTicket(what, where=where, hint="see what it has with `klist -k`, or export it anew")
        hint = next((hint for words, hint in _HINTS if re.search(words, said)), "see what `kinit` and `kvno` say")
        return NoTicket(f"no Kerberos ticket: {said}", where=where, hint=hint)

    def step(self, context: Any, token: bytes | None, where: str) -> bytes:
        """Return the token to send next, empty if there is none. Raises NoTicket."""
        gssapi = _gssapi()
        try:
            found: bytes | None = context.step(token)
        except gssapi.exceptions.GSSError as error:
            raise self.trouble(error, where) from None
        return found or b""


def _said(error: Any) -> str:
    """Return the library's message about an error, in one line."""
    return " ".join(str(error.get_all_statuses(error.min_code, False)[0] if error.min_code else error).split())


def _gssapi() -> Any:
    try:
        import gssapi
    except ImportError as error:
        why = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be used ({error})"
        raise CallError(
            f"Kerberos needs the package gssapi, which {why}",
            hint="install the extra 'kerberos' (docs/how-to/install.md): it is built with libkrb5-dev and a C compiler",
        ) from None
    return gssapi


class Spnego(requests.auth.AuthBase):
    """Send a Kerberos ticket only to a server that requests it with an answer 401 (Negotiate).

    Such a server has to prove that it could read the ticket (mutual authentication); otherwise its answer is not
    accepted. Error answers need no proof, because Hadoop omits it from some of them.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._begin: int | None = None

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Register the handler of 401 answers with a request."""
        tell = getattr(request.body, "tell", None)
        self._begin = tell() if tell is not None else None
        request.register_hook("response", self._answered)  # type: ignore[no-untyped-call]
        return request

    def _answered(self, response: requests.Response, **named: Any) -> requests.Response:
        if response.status_code != 401 or not wants_ticket(response) or "Authorization" in response.request.headers:
            return response
        parts = urlsplit(response.url)
        where = f"{parts.scheme}://{parts.netloc}"
        try:
            context = self._login.context("HTTP", parts.hostname or "", _SPNEGO, ("mutual_authentication",))
            token = self._login.step(context, None, where)
        except BaseException:
            response.close()
            raise
        # After its body has been read to the end, the connection can be used again.
        response.raw.read(_BODY_BYTES)
        response.raw.release_conn()
        again = response.request.copy()
        if self._begin is not None:
            again.body.seek(self._begin)  # type: ignore[union-attr]
        again.headers["Authorization"] = f"Negotiate {base64.b64encode(token).decode()}"
        answer: requests.Response = response.connection.send(again, **named)  # type: ignore[attr-defined]
        answer.history.append(response)
        answer.request = again
        if answer.status_code < 400:
            try:
                _prove(context, answer, where)
            except BadAnswer:
                answer.close()
                raise
        return answer


def _prove(context: Any, answer: requests.Response, where: str) -> None:
    """Raise BadAnswer if the answer does not prove that the server could read the ticket."""
    hint = "see that the address is the server's, and that no proxy between drops its WWW-Authenticate header"
    said = re.search(r"(?i)\bnegotiate +([a-z0-9+/]+=*)", answer.headers.get("WWW-Authenticate", ""))
    if said is None:
        raise BadAnswer("the server took our Kerberos ticket and did not prove who it is", where=where, hint=hint)
    try:
        context.step(base64.b64decode(said[1]))
        why = "" if context.complete else "it is not complete"
    except ValueError:
        why = "it is not base64"
    except _gssapi().exceptions.GSSError as error:
        why = _said(error)
    if why:
        raise BadAnswer(f"the server's proof of who it is cannot be taken: {why}", where=where, hint=hint)


def wants_ticket(response: requests.Response) -> bool:
    """Return whether a 401 answer asks for a ticket."""
    return "negotiate" in response.headers.get("WWW-Authenticate", "").lower()


class SaslGssapi:
    """The client's side of SASL GSSAPI (RFC 4752) with one server. `wrap` and `unwrap` require that it is `done`."""

    def __init__(self, login: Login, service: str, host: str, where: str) -> None:
        self._login, self._where = login, where
        flags = ("mutual_authentication", "out_of_sequence_detection", "integrity", "confidentiality")
        self._context = login.context(service, host, _KRB5, flags)
        self._layer = 0

    @property
    def done(self) -> bool:
        """Whether both sides are authenticated and have agreed on the protection of further messages."""
        return bool(self._layer)

    @property
    def protects(self) -> bool:
        """Return whether further messages have to be protected by `wrap` and `unwrap`."""
        return self._layer in (_INTEGRITY, _PRIVACY)

    def answer(self, challenge: bytes | None) -> bytes:
        """Return the answer to the server's challenge (None: the first message). Raises NoTicket, BadAnswer."""
        if not self._context.complete:
            return self._login.step(self._context, challenge, self._where)
        offered = self.unwrap(challenge or b"")
        layer = next((one for one in (_PRIVACY, _INTEGRITY, _PLAIN) if offered and offered[0] & one), 0)
        if len(offered) != 4 or not layer:
            raise BadAnswer("no offer of a security layer", where=self._where)
        self._layer = layer
        largest = b"\0\0\0" if layer == _PLAIN else b"\xff\xff\xff"
        sealed: bytes = self._context.wrap(bytes([layer]) + largest, False).message
        return sealed

    def wrap(self, data: bytes) -> bytes:
        """Protect a message for the server."""
        sealed: bytes = self._context.wrap(data, self._layer == _PRIVACY).message
        return sealed

    def unwrap(self, data: bytes) -> bytes:
        """Unprotect a message of the server. Raises BadAnswer if it is not authentic or was changed."""
        gssapi = _gssapi()
        try:
            found: bytes = self._context.unwrap(data).message
        except gssapi.exceptions.GSSError:
            raise BadAnswer("a message that the ResourceManager has not sealed", where=self._where) from None
        return found


def is_peer(connection: socket.socket, named: str, host: str, resolve: Callable[..., Any] = socket.getaddrinfo) -> bool:
    """Return whether the host in the server's principal is the requested one."""
    if named.lower() == host.lower():
        return True
    try:
        return connection.getpeername()[0] in {found[4][0] for found in resolve(named, None)}
    except OSError:
        return False


def hint_of(message: str) -> str | None:
    """Return a hint for a secure server's message about a ticket; None if the message is about something else."""
    if "SIMPLE authentication is not enabled" in message:
        return "the ResourceManager wants Kerberos: give http.kerberos, or --principal and --keytab"
    if "lock skew" in message:
        return "set the clocks of this machine, the KDC and the ResourceManager by NTP"
    return None
