"""Hosts over SSH against real sshd processes: files whole or not at all, keys strictly, every failure one line."""

from __future__ import annotations

import errno
import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from harness.base.errors import InputError
from harness.clusters import jars, site
from harness.clusters.daemons import free_ports
from harness.clusters.hosts_folder import HostsFolder
from harness.clusters.inventory import Host, read_inventory, restored
from harness.clusters.remote import Remote
from harness.clusters.ssh import RemotePlace, SshCluster
from harness.clusters.state import ClusterSpec, ClusterState, StateFolder
from harness.clusters.tunnel import Tunnel
from harness.yarn.errors import Refused, Unreachable
from harness.yarn.files import TEMPORARY, acl_of, left_by
from harness.yarn.sftp import SftpStore
from tests import sshlab
from tests.patience import at_most
from tests.ports import held_port

pytestmark = [pytest.mark.sshd, pytest.mark.xdist_group("sshd")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshlab.Lab]:
    with sshlab.lab(tmp_path_factory.mktemp("lab")) as made:
        made.add("one")
        made.add("two")
        yield made


@pytest.fixture
def one(lab: sshlab.Lab) -> Host:
    return host_of(lab, "one")


def host_of(lab: sshlab.Lab, name: str) -> Host:
    inventory = read_inventory(lab.inventory({"one": ["rm"], "two": ["nm"]}))
    return next(host for host in inventory.hosts if host.name == name)


def over_sftp(lab: sshlab.Lab, path: Path) -> SftpStore:
    server = lab.servers["one"]
    user = os.environ.get("USER") or "root"
    keys = {"key_file": str(lab.key), "known_hosts": str(lab.known_hosts)}
    return SftpStore(server.address, str(path), server.port, user, **keys)


@pytest.mark.skipif(not shutil.which("setfacl"), reason="needs the package acl")
def test_over_sftp_the_acl_stays(lab: sshlab.Lab, tmp_path: Path) -> None:
    path = tmp_path / "it's f.xml"
    path.write_bytes(b"<allocations/>")
    path.chmod(0o600)
    subprocess.run(["setfacl", "-m", "u:41234:r,m:rw", str(path)], check=True)
    before = acl_of(path)
    over_sftp(lab, path).write(b"<allocations></allocations>")
    assert path.read_bytes() == b"<allocations></allocations>"
    assert before is not None
    assert acl_of(path) == before


def test_over_sftp_what_killed_writers_left_is_cleared(lab: sshlab.Lab, tmp_path: Path) -> None:
    names = ["f.xml", ".f.xml.yarnfair-0123", ".f.xml.swp"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    place = over_sftp(lab, tmp_path / "f.xml")
    assert place.clear() == 1
    assert {item.name for item in tmp_path.iterdir()} == {"f.xml", ".f.xml.swp"}
    for _ in range(2):
        place.beside(".f.xml.swp").remove()
        assert [item.name for item in tmp_path.iterdir()] == ["f.xml"]


def changed(of: Host, **access: object) -> Host:
    return replace(of, access=replace(of.access, **access))  # type: ignore[arg-type]


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".part") or TEMPORARY in path.name]


def test_commands_files_and_checksums(one: Host, lab: sshlab.Lab, tmp_path: Path) -> None:
    place = lab.servers["one"].folder / "opt"
    (tmp_path / "large").write_bytes(os.urandom(3 << 20))
    with Remote(one) as remote:
        assert remote.run("echo hello; exit 3").code == 3
        assert remote.check("cat", "cat", stdin="back") == "back"
        remote.put({str(place / "text"): b"first"})
        remote.put({str(place / "text"): b"second"}, mode=0o600)
        remote.put({str(place / "large"): tmp_path / "large"})
        assert remote.read(str(place / "text"), 100) == b"second"
        with pytest.raises(InputError, match="larger than 3 bytes"):
            remote.read(str(place / "text"), 3)
        with pytest.raises(InputError, match="no such thing: it is not there"):
            remote.check("echo 'it is not there' >&2; false", "no such thing")
    assert (place / "large").read_bytes() == (tmp_path / "large").read_bytes()
    assert (place / "text").stat().st_mode & 0o777 == 0o600
    assert left_over(place) == []


def test_the_allocation_file_on_a_host(one: Host, lab: sshlab.Lab) -> None:
    path = lab.servers["one"].folder / "opt" / "fair-scheduler.xml"
    path.write_text("<allocations/>")
    place = RemotePlace(one, str(path))
    place.write(b"<allocations></allocations>", before=b"<allocations/>")
    assert path.read_text() == "<allocations></allocations>"
    with pytest.raises(InputError, match="somebody else changed"):
        place.write(b"x", before=b"<allocations/>")


#: Only root can make a file that belongs to others, and only for root no owner is out of reach.
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a file of another owner")


@as_root
def test_the_allocation_file_on_a_host_keeps_owner_group_mode_and_link(
    one: Host, lab: sshlab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt = lab.servers["one"].folder / "opt"
    real, link = opt / "real" / "production.xml", opt / "link.xml"
    real.parent.mkdir()
    real.write_text("<allocations/>")
    os.chown(real, 41234, 41235)
    real.chmod(0o640)
    link.symlink_to("real/production.xml")

    def kept() -> tuple[bytes, int, int, int]:
        told = real.stat()
        return real.read_bytes(), told.st_uid, told.st_gid, told.st_mode & 0o7777

    RemotePlace(one, str(link)).write(b"<allocations>2</allocations>", before=b"<allocations/>")
    assert link.is_symlink()
    assert kept() == (b"<allocations>2</allocations>", 41234, 41235, 0o640)

    def denied(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    # As a user who is neither root nor in the group: then the old file stays.
    monkeypatch.setattr(paramiko.SFTPClient, "chown", denied)
    with pytest.raises(InputError, match="the group 41235 could not read the new file"):
        RemotePlace(one, str(link)).write(b"<allocations>3</allocations>")
    assert kept() == (b"<allocations>2</allocations>", 41234, 41235, 0o640)
    assert left_over(opt) + left_over(real.parent) == []


def adopted(lab: sshlab.Lab, state: Path, before: bytes) -> tuple[SshCluster, Path, list[str]]:
    """A cluster that was adopted (as its state says), its allocation file, and what it will say."""
    path = lab.servers["one"].folder / "opt" / "adopted.xml"
    path.write_bytes(before)
    backup = path.with_name(".adopted.xml.adopted-0")
    backup.write_bytes(before)
    inventory = read_inventory(lab.inventory({"one": ["rm"], "two": ["nm"]}))
    said: list[str] = []
    cluster = SshCluster(StateFolder(state), inventory, progress=said.append)
    remote = {
        "inventory": inventory.document(),
        "adopted": True,
        "scheduler_file": str(path),
        "backup": str(backup),
    }
    with cluster.folder.lock():
        cluster.folder.save(ClusterState("ssh", "mark", ClusterSpec(nodes=1), remote=remote))
        cluster.folder.path("allocations-before.xml").write_bytes(before)
    return cluster, path, said


def test_release_keeps_what_the_file_held(lab: sshlab.Lab, tmp_path: Path) -> None:
    """An administrator's change between adopt and release is not lost, nor one that was kept before."""
    kept = tmp_path / "state-adopted.xml"
    for number, theirs in enumerate((b"<allocations>theirs</allocations>", b"<allocations>others</allocations>")):
        cluster, path, said = adopted(lab, tmp_path / "state", b"<allocations/>")
        path.write_bytes(theirs)
        assert cluster.release()
        assert path.read_bytes() == b"<allocations/>"
        target = kept if number == 0 else kept.with_name(f"{kept.name}.1")
        assert target.read_bytes() == theirs
        assert target.stat().st_mode & 0o777 == 0o600
        assert said == [f"what the allocation file held until now is {target}"]
        assert not (tmp_path / "state").exists()
        assert [found.name for found in path.parent.iterdir() if "adopted" in found.name] == ["adopted.xml"]
    cluster, _, said = adopted(lab, tmp_path / "state", b"<allocations/>")
    assert not cluster.release()
    assert said == []
    assert len(list(tmp_path.glob("state-*"))) == 2


def test_release_writes_nothing_when_it_cannot_keep_what_is_there(
    lab: sshlab.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, path, _ = adopted(lab, tmp_path / "state", b"<allocations/>")
    path.write_bytes(b"<allocations>theirs</allocations>")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(site, "write_private", full)
        with pytest.raises(InputError, match="cannot be kept: No space left"):
            cluster.release()
    assert path.read_bytes() == b"<allocations>theirs</allocations>"
    assert cluster.folder.load() is not None
    assert cluster.release()


def test_copies_of_an_adopted_clusters_file_are_nobody_elses(
    lab: sshlab.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lab.servers["one"].folder / "opt" / "secret.xml"
    path.write_text("<allocations/>")
    path.chmod(0o640)
    modes: list[int] = []

    def look(cluster: SshCluster, state: ClusterState, _: object) -> ClusterState:
        copies = [Path(str(state.remote["backup"])), cluster.folder.path("allocations-before.xml")]
        assert [copy.read_text() for copy in copies] == ["<allocations/>"] * 2
        # Or a controller that gives the file back would sweep it.
        assert not left_by(copies[0].name, path.name)
        modes.extend(copy.stat().st_mode & 0o777 for copy in copies)
        raise InputError("far enough")

    monkeypatch.setattr(SshCluster, "_open_tunnel", look)
    inventory = read_inventory(lab.inventory({"one": ["rm"], "two": ["nm"]}))
    with pytest.raises(InputError, match="far enough"):
        SshCluster(StateFolder(tmp_path / "state"), inventory).adopt(("rm", 8088), str(path))
    assert modes == [0o600, 0o600]


def test_a_mistake_in_the_first_inventory_is_forgotten_and_the_corrected_one_taken(
    lab: sshlab.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was started, so nothing is kept that would have to be ended through hosts that let nobody in."""
    monkeypatch.setattr(jars, "find", lambda **_: tmp_path / "lib")
    (tmp_path / "lib").mkdir()
    inventory = read_inventory(lab.inventory({"one": ["rm"], "two": ["nm"]}))
    other = sshlab.keygen(tmp_path / "other")
    wrong = replace(inventory, hosts=tuple(changed(host, key=str(other)) for host in inventory.hosts))
    folder = StateFolder(tmp_path / "state")
    with pytest.raises(Refused, match="login refused"):
        SshCluster(folder, wrong).up(ClusterSpec(nodes=1))
    assert not (tmp_path / "state").exists()
    with pytest.raises(Refused, match="login refused"):
        SshCluster(folder, wrong).up(ClusterSpec(nodes=1), keep=True)  # for `doctor`
    assert SshCluster(folder, wrong).status() is None

    def far_enough(*_: object) -> None:
        raise InputError("far enough")

    monkeypatch.setattr("harness.clusters.ssh.install", far_enough)
    with pytest.raises(InputError, match="far enough"):
        SshCluster(folder, inventory).up(ClusterSpec(nodes=1))
    assert SshCluster(folder).down() == []
    assert not (tmp_path / "state").exists()


def test_a_remote_file_that_is_not_there(one: Host, lab: sshlab.Lab) -> None:
    with (
        pytest.raises(InputError, match=r"/nowhere\.xml cannot be read: No such file") as caught,
        Remote(one) as remote,
    ):
        remote.read("/nowhere.xml", 10)
    assert "check the path" in caught.value.line()


def test_a_key_that_the_host_does_not_know(one: Host, tmp_path: Path) -> None:
    other = sshlab.keygen(tmp_path / "other")
    with pytest.raises(Refused, match="login refused") as caught, Remote(changed(one, key=str(other))) as remote:
        remote.run("true")
    assert "one (127.0.1.1:" in caught.value.line()
    assert "\n" not in caught.value.line()


def test_a_file_that_is_no_key(one: Host, tmp_path: Path) -> None:
    (tmp_path / "no-key").write_text("hello")
    with pytest.raises(InputError, match="no usable key"), Remote(changed(one, key=str(tmp_path / "no-key"))) as remote:
        remote.run("true")


def test_a_changed_host_key(one: Host, lab: sshlab.Lab, tmp_path: Path) -> None:
    stranger = sshlab.keygen(tmp_path / "stranger")
    words = Path(f"{stranger}.pub").read_text().split()
    known = tmp_path / "known_hosts"
    known.write_text(f"[{one.access.host}]:{one.access.port} {words[0]} {words[1]}\n")
    with pytest.raises(Refused, match="key differs") as caught, Remote(changed(one, known_hosts=str(known))) as remote:
        remote.run("true")
    assert "ssh-keyscan" in caught.value.line()


def test_a_host_that_nobody_knows(one: Host, tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text("")
    strange = changed(one, known_hosts=str(tmp_path / "known_hosts"))
    with pytest.raises(Refused, match="known_hosts does not know"), Remote(strange) as remote:
        remote.run("true")


def test_a_refused_connection(one: Host) -> None:
    nobody = changed(one, port=held_port("127.0.1.1"))
    with pytest.raises((Unreachable, Refused), match="no connection"), Remote(nobody) as remote:
        remote.run("true")


def test_a_host_that_never_speaks(one: Host) -> None:
    with socket.create_server(("127.0.1.1", 0)) as silent:
        slow = changed(one, port=silent.getsockname()[1], timeout_s=1.0)
        with at_most(20), pytest.raises(Unreachable), Remote(slow) as remote:
            remote.run("true")


def test_a_command_that_never_ends(one: Host) -> None:
    with at_most(20), Remote(one) as remote, pytest.raises(Unreachable, match="no answer in time"):
        remote.run("sleep 60", timeout_s=1.0)


def test_a_host_that_freezes(one: Host, lab: sshlab.Lab) -> None:
    """Neither a command nor a file waits for ever, on an open connection and on a new one; then all is well again."""
    place = lab.servers["one"].folder / "opt"
    with Remote(one) as before, Remote(one) as also:
        before.run("true")
        also.sftp()
        # Patience from now on: the connections were made with the usual one.
        before.host = also.host = changed(one, timeout_s=1.0)
        with lab.servers["one"].frozen():
            with pytest.raises(Unreachable, match="no answer in time while a command ran") as caught:
                before.run("true", timeout_s=1.0)
            assert "\n" not in caught.value.line()
            with pytest.raises(Unreachable, match="no connection"):
                before.run("true", timeout_s=1.0)
        also.host = one
        also.put({str(place / "after"): b"2"})
    assert (place / "after").read_bytes() == b"2"
    assert left_over(place) == []


def test_a_wait_without_an_end_of_its_own_is_ended(one: Host) -> None:
    with Remote(one) as remote:
        transport = remote.client().get_transport()
        assert transport is not None
        with (
            at_most(60),
            pytest.raises(Unreachable, match="no answer in time while it waits"),
            remote._talking("it waits", 0.5),
        ):
            # A request to which nobody answers, as paramiko waits for it: until the connection ends.
            transport.open_session().recv(1)
        assert remote.run("echo back").out == "back\n"


def test_a_folder_on_hosts_outlives_one_that_is_gone(lab: sshlab.Lab, tmp_path: Path) -> None:
    hosts = [host_of(lab, name) for name in ("one", "two")]
    folder = HostsFolder(hosts, str(lab.folder / "shared"))
    folder.write({"first": b"1"})
    assert folder.troubles() == []
    try:
        # One machine stands for both hosts here, so the folder is one, too: what matters is who is asked.
        lab.servers["two"].stop()
        folder.write({"second": b"2"})
        (said,) = folder.troubles()
        assert said.startswith("two (127.0.1.")
        assert "no connection" in said
        assert folder.troubles() == []
        assert folder.read("second") == b"2"
        assert folder._members[1].owed.keys() == {str(lab.folder / "shared" / "second")}
        folder.write({"third": b"3"})
        assert folder.troubles() == [], "it is left alone for a while"
        lab.servers["one"].stop()
        with pytest.raises(Unreachable, match="no host of the cluster answers"):
            folder.write({"fourth": b"4"})
        assert folder.read("third") is None
        for server in lab.servers.values():
            server.start()
        for member in folder._members:
            member.not_before = 0.0
        folder.write({"fifth": b"5"})
        assert [member.owed for member in folder._members] == [{}, {}]
        assert folder.read("fourth") == b"4"
    finally:
        for server in lab.servers.values():
            if not server.pid:
                server.start()
        folder.remove()
    assert not (lab.folder / "shared").exists()


def test_a_connection_cut_in_the_middle_of_a_file(one: Host, lab: sshlab.Lab, tmp_path: Path) -> None:
    """The old file is there, whole, and nothing half-written beside it; the next try goes through."""
    place = lab.servers["one"].folder / "opt"
    (place / "kept").write_bytes(b"as it was")
    (tmp_path / "large").write_bytes(os.urandom(4 << 20))
    assert one.access.port is not None
    with sshlab.cutting_proxy((one.access.host, one.access.port), 1 << 20) as port:
        known = tmp_path / "known_hosts"
        words = (lab.servers["one"].folder / "host.pub").read_text().split()
        known.write_text(f"[127.0.0.1]:{port} {words[0]} {words[1]}\n")
        through = changed(one, host="127.0.0.1", port=port, known_hosts=str(known))
        with Remote(through) as remote:
            with pytest.raises(Unreachable, match="the connection broke"):
                remote.put({str(place / "kept"): tmp_path / "large"})
            assert (place / "kept").read_bytes() == b"as it was"
            assert left_over(place) == []
            remote.put({str(place / "kept"): tmp_path / "large"})
    assert (place / "kept").read_bytes() == (tmp_path / "large").read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small disk: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(one: Host, small_disk: Path, tmp_path: Path) -> None:
    (small_disk / "kept").write_bytes(b"as it was")
    (tmp_path / "large").write_bytes(os.urandom(4 << 20))
    with Remote(one) as remote:
        with pytest.raises(InputError) as caught:
            remote.put({str(small_disk / "kept"): tmp_path / "large"})
        assert not isinstance(caught.value, Unreachable)
        remote.run("true")  # the connection is still good
    assert (small_disk / "kept").read_bytes() == b"as it was"
    assert left_over(small_disk) == []


def test_through_a_jump_host(lab: sshlab.Lab) -> None:
    path = lab.inventory({"one": ["rm"], "two": ["nm"]})
    path.write_text(path.read_text().replace("two: {", "two: {jump: one, "))
    inventory = read_inventory(path)
    two = inventory.hosts[1]
    assert two.jump is not None
    with Remote(two) as remote:
        told = remote.run("echo $SSH_CONNECTION").out.split()
    # The second host sees the connection come from itself, not from the user's machine: sshd of the first opened it.
    assert told[2] == lab.servers["two"].address
    assert restored(inventory.document()) == inventory


def test_a_tunnel_survives_a_dropped_connection(one: Host, lab: sshlab.Lab) -> None:
    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.1.1", 0), Hello)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    (port,) = free_ports(["http"]).values()
    tunnel = Tunnel(one, {port: ("127.0.1.1", server.server_port)})
    tunnel.start()
    try:
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
                assert answer.read() == b"hello"
            lab.servers["one"].cut()
            time.sleep(0.2)
    finally:
        tunnel.close()
        server.shutdown()
        server.server_close()


def test_a_key_that_has_changed_since_ends_the_cluster_all_the_same(lab: sshlab.Lab, tmp_path: Path) -> None:
    inventory = read_inventory(lab.inventory({"one": ["rm"], "two": ["nm"]}))
    old = sshlab.keygen(tmp_path / "old")
    then = replace(inventory, hosts=tuple(changed(host, key=str(old)) for host in inventory.hosts))
    folder = StateFolder(tmp_path / "state")
    with folder.lock():
        folder.save(ClusterState("ssh", "mark", ClusterSpec(nodes=1), remote={"inventory": then.document()}))
    assert any("login refused" in str(what) for what in SshCluster(folder).down())
    assert folder.load() is not None
    elsewhere = replace(inventory, hosts=tuple(changed(host, host="elsewhere") for host in inventory.hosts))
    assert SshCluster(folder, elsewhere).down(), "other hosts of the same names are not touched"
    assert SshCluster(folder, inventory).down() == []
    assert not folder.folder.exists()
