"""An authority that signs what certificates a test wants, and a server that shows one of them."""

from __future__ import annotations

import datetime
import ipaddress
import itertools
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Signed:
    """A certificate and its key, as files."""

    cert: Path
    key: Path

    def pkcs12(self, password: str) -> bytes:
        """Both as Java reads them."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12

        key: Any = serialization.load_pem_private_key(self.key.read_bytes(), None)
        cert = x509.load_pem_x509_certificate(self.cert.read_bytes())
        return pkcs12.serialize_key_and_certificates(
            b"server", key, cert, None, serialization.BestAvailableEncryption(password.encode())
        )


class Authority:
    """Signs; ``file`` is what its clients trust."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder, self._name = folder, name
        self._key = _new_key()
        self._serial = itertools.count(1)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._pem(self._sign(name, self._key.public_key(), 0.0, 30.0, authority=True)))

    def signed(self, *hosts: str, begins_d: float = -1.0, ends_d: float = 1.0) -> Signed:
        """A server's certificate for these hosts, valid between two times, in days from now."""
        key = _new_key()
        from cryptography.hazmat.primitives import serialization

        made = self._sign("server", key.public_key(), begins_d, ends_d, hosts)
        stem = self._folder / f"{self._name}-{made.serial_number}"
        found = Signed(stem.with_suffix(".cert"), stem.with_suffix(".key"))
        found.cert.write_bytes(self._pem(made))
        found.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return found

    def _pem(self, made: Any) -> bytes:
        from cryptography.hazmat.primitives import serialization

        data: bytes = made.public_bytes(serialization.Encoding.PEM)
        return data

    def _sign(
        self,
        name: str,
        key: Any,
        begins_d: float,
        ends_d: float,
        hosts: tuple[str, ...] = (),
        *,
        authority: bool = False,
    ) -> Any:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        def named(text: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(self._name))
            .public_key(key)
            .serial_number(next(self._serial))
            .not_valid_before(now + begins_d * _DAY)
            .not_valid_after(now + ends_d * _DAY)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            # Without these two and the usage Python 3.13 refuses a certificate, as RFC 5280 allows it to.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(x509, authority), critical=True)
        )
        if hosts:
            names = [
                x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
                for host in hosts
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _usage(x509: Any, authority: bool) -> Any:
    """An authority signs certificates, a server its handshakes."""
    never = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only")
    flags = {**dict.fromkeys((*never, "decipher_only"), False), "digital_signature": not authority}
    return x509.KeyUsage(**flags, key_cert_sign=authority, crl_sign=authority)


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


class TlsServer:
    """Answers each connection with the same bytes, behind the certificate that it shows now."""

    def __init__(self, shown: Signed, answer: bytes) -> None:
        self.show(shown)
        self._answer = answer
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def show(self, shown: Signed) -> None:
        """From the next connection on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(shown.cert, shown.key)
        self._context = context

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def __enter__(self) -> TlsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=10)
        self._listener.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                plain, _ = self._listener.accept()
                plain.settimeout(5)
                with self._context.wrap_socket(plain, server_side=True) as connection:
                    connection.recv(65536)
                    connection.sendall(self._answer)
            except OSError:
                continue
