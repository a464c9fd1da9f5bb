"""A stand-in for the package gssapi and the library behind it: who asks for tickets of whom, and what goes wrong.

It has what harness.yarn.kerberos uses. A token is ``ticket of CLIENT for SERVICE``, a sealed message ``sealed:...``.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any


class GSSError(Exception):
    """As gssapi's: `min_code`, and what the library says of it."""

    def __init__(self, said: str = "") -> None:
        super().__init__(said or "Major (720896): The referenced credential has expired, Minor (100001): Success")
        self.min_code = 1 if said else 0

    def get_all_statuses(self, code: int, major: bool) -> list[str]:
        return [str(self)]


class ExpiredCredentialsError(GSSError):
    pass


SPNEGO = "1.3.6.1.5.5.2"


def proof(service: str) -> bytes:
    """By which a server shows a SPNEGO context that it could read its ticket."""
    return f"proof of {service}".encode()


class FakeGssapi(types.ModuleType):
    """To be put into ``sys.modules``. `trouble`: raised instead of credentials, as often as it has entries."""

    def __init__(self) -> None:
        super().__init__("gssapi")
        self.trouble: list[GSSError | None] = []
        self.stores: list[dict[str, str]] = []
        #: Steps until a context is complete.
        self.steps = 1
        fake = self

        class Credentials:
            def __init__(self, name: Any, usage: str, store: dict[str, str]) -> None:
                fake.stores.append(store)
                self.error = fake.trouble.pop(0) if fake.trouble else None
                if self.error is not None and not isinstance(self.error, ExpiredCredentialsError):
                    raise self.error
                self.client = name.text

            @property
            def lifetime(self) -> int:
                if self.error is not None:
                    raise self.error
                return 60

        class SecurityContext:
            def __init__(self, name: Any, creds: Any, mech: str, flags: Sequence[str], usage: str) -> None:
                self.words = f"ticket of {creds.client if creds else 'the cache'} for {name.text}".encode()
                self.proof = proof(name.text) if mech == SPNEGO else None
                self.steps = fake.steps + (self.proof is not None)
                self.taken: list[bytes | None] = []
                self.complete = False

            def step(self, token: bytes | None) -> bytes | None:
                if self.proof is not None and token not in (None, self.proof):
                    raise GSSError("A token was invalid")
                self.taken.append(token)
                self.complete = len(self.taken) >= self.steps
                return self.words if len(self.taken) == 1 else None

            def wrap(self, data: bytes, encrypt: bool) -> Any:
                return types.SimpleNamespace(message=(b"secret:" if encrypt else b"sealed:") + data)

            def unwrap(self, data: bytes) -> Any:
                mark, colon, found = data.partition(b":")
                if not colon or mark not in (b"sealed", b"secret"):
                    raise GSSError("A token had an invalid Message Integrity Check (MIC)")
                return types.SimpleNamespace(message=found)

        class Name:
            def __init__(self, text: str, kind: str) -> None:
                self.text = text

        self.Credentials, self.SecurityContext, self.Name = Credentials, SecurityContext, Name
        self.NameType = types.SimpleNamespace(hostbased_service="service", kerberos_principal="principal")
        self.OID = types.SimpleNamespace(from_int_seq=str)
        self.RequirementFlag = types.SimpleNamespace(
            mutual_authentication=1, out_of_sequence_detection=2, integrity=3, confidentiality=4
        )
        self.exceptions = types.SimpleNamespace(GSSError=GSSError, ExpiredCredentialsError=ExpiredCredentialsError)
