"""A Kerberos KDC of the tests' own: a realm in a folder, on free ports of the loopback. Needs Debian's krb5-kdc."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

REALM = "YARNFAIR.TEST"
_SBIN = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/sbin"


def _program(name: str) -> str:
    found = shutil.which(name, path=_SBIN)
    assert found is not None, f"{name} is not installed"
    return found


class Kdc:
    """A realm. ``conf`` is its krb5.conf; tickets last `life_s` seconds at most."""

    def __init__(self, folder: Path, *, life_s: int = 3600) -> None:
        self.folder = folder
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            self.port = int(held.getsockname()[1])
        self.conf = folder / "krb5.conf"
        # An authenticator may be as old as `clockskew`; a server takes a ticket so much longer.
        self.conf.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f" ticket_lifetime = {life_s}s\n clockskew = 5\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n"
            f"  max_life = {life_s}s\n  supported_enctypes = aes256-cts:normal\n }}\n"
            f"[logging]\n kdc = FILE:{folder}/kdc.log\n"
        )
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("KRB5")},
            "KRB5_CONFIG": str(self.conf),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._run(_program("kdb5_util"), "create", "-s", "-r", REALM, "-P", "of-a-test")

    def _run(self, *words: str) -> None:
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def keytab(self, name: str, *principals: str) -> Path:
        """A keytab with these principals, which are made where they are not there."""
        file = self.folder / name
        for principal in principals:
            # It says that one is there already, and ends with 0.
            self._run(_program("kadmin.local"), "-r", REALM, "-q", f"addprinc -randkey {principal}")
            self._run(_program("kadmin.local"), "-r", REALM, "-q", f"ktadd -k {file} -norandkey {principal}")
        return file

    def change_key(self, principal: str) -> None:
        """What keytabs of it hold is worth nothing from now on."""
        self._run(_program("kadmin.local"), "-r", REALM, "-q", f"cpw -randkey {principal}")

    def remove(self, principal: str) -> None:
        """The KDC does not know it from now on."""
        self._run(_program("kadmin.local"), "-r", REALM, "-q", f"delprinc -force {principal}")

    def start(self) -> None:
        """Answers from now on."""
        log = (self.folder / "kdc.out").open("ab")
        self._process = subprocess.Popen(
            [_program("krb5kdc"), "-n", "-r", REALM], env=self.environment, stdout=log, stderr=log
        )
        log.close()
        end = time.monotonic() + 300
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            alive = self._process.poll() is None and time.monotonic() < end
            assert alive, (self.folder / "kdc.out").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """Answers nobody any longer, until it is started again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=300)
            self._process = None


@contextlib.contextmanager
def kdc(folder: Path, *, life_s: int = 3600) -> Iterator[Kdc]:
    """A KDC that answers, and is gone afterwards."""
    made = Kdc(folder, life_s=life_s)
    made.start()
    try:
        yield made
    finally:
        made.stop()
