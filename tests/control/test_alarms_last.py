"""An alarm ends when its cause was seen to be gone, not when a tick could not look for it."""

from __future__ import annotations

from pathlib import Path

from harness.base.errors import InputError
from tests.control.driven import controlled, kinds, rm_with_load
from tests.control.rm_model import silence

UNROOTED = b"<allocations><queue name='a'><weight>2</weight></queue><queue name='b'/></allocations>"


def test_what_cannot_be_set_lasts_through_ticks_that_write_nothing(tmp_path: Path) -> None:
    """It was said to be mended two seconds later, when nothing was to be written."""
    rm = rm_with_load(UNROOTED)
    with controlled(rm, tmp_path, policy="drf") as controller:
        assert "ad-hoc" in kinds(controller.tick())
        for _ in range(3):
            rm.now_s += 5.0
            report = controller.tick()
            assert not report.wrote
            assert kinds(report) == {"ad-hoc"}
        rm.down = silence()
        assert kinds(controller.tick()) == {"ad-hoc", "observation"}
        rm.down = None
        rm.place.data = UNROOTED.replace(b"<allocations>", b"<allocations><queue name='root'>").replace(
            b"</allocations>", b"</queue></allocations>"
        )
        rm.now_s += 5.0
        assert "ad-hoc" not in kinds(controller.tick())


def test_a_failed_write_lasts_while_the_rm_is_down(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        rm.place.fail = InputError("No space left on device")
        assert kinds(controller.tick()) == {"actuation"}
        rm.place.fail, rm.down = None, silence()
        rm.now_s += 5.0
        report = controller.tick()
        assert kinds(report) == {"actuation", "observation"}, "nobody has tried again"
        rm.down = None
        rm.now_s += 5.0
        assert controller.tick().alarms == ()
        assert rm.place.writes


def test_a_failed_write_is_not_mended_by_losing_the_lease_for_want_of_an_rm(tmp_path: Path) -> None:
    """A holder that sees nothing gives no sign of life: that it does not write any more mends nothing."""
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        rm.place.fail = InputError("No space left on device")
        controller.tick()
        rm.down, controller.holds = silence(), False
        controller._hold = lambda: None  # type: ignore[method-assign]
        rm.now_s += 5.0
        report = controller.tick()
        assert kinds(report) == {"actuation", "observation"}
        assert report.dropped == frozenset()
        rm.down = None
        rm.now_s += 5.0
        report = controller.tick()
        assert kinds(report) == set()
        assert report.dropped == {"actuation"}, "now it sees that another one may write: it is no affair of its own"


def test_weights_that_were_not_in_force_are_an_alarm_while_the_rm_is_down(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        rm.loads = False
        assert kinds(controller.tick()) == {"not-in-force"}
        rm.loads, rm.down = True, silence()
        rm.now_s += 5.0
        assert kinds(controller.tick()) == {"not-in-force", "observation"}
        rm.down = None
        rm.now_s += 5.0
        assert controller.tick().alarms == ()


def test_a_file_that_cannot_be_read_is_an_alarm_until_it_was_read(tmp_path: Path) -> None:
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        whole, rm.place.data = rm.place.data, b"<allocations>"
        rm.now_s += 5.0
        assert "file" in kinds(controller.tick())
        rm.place.data = whole
        rm.now_s += 5.0
        assert controller.tick().alarms == ()


def test_a_configuration_that_was_not_reloaded_is_told_until_one_is(tmp_path: Path) -> None:
    """It was said to be mended in the next period, while the file was as wrong as before."""
    rm = rm_with_load()
    with controlled(rm, tmp_path) as controller:
        controller.tick()
        controller.announce("config", "not reloaded")
        for _ in range(3):
            rm.now_s += 5.0
            assert kinds(controller.tick()) == {"config"}
        reloaded = controller.remade(controller.settings, controller.policy)
        rm.now_s += 5.0
        assert kinds(reloaded.tick()) == set()
