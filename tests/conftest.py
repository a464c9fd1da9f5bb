"""Shared by all tests: what needs Java, a browser, Docker or sshd is left out where these are not, and says so.

The summary counts the tests that ran against a real ResourceManager; fewer than YARNFAIR_LIVE_FLOOR are a failure.
With CI=true nothing may be left out: a missing tool, or any skipped test, is a failure.

Whatever needs something that a bare machine lacks is marked ``parts`` here: `make test-bare` runs the tests without
that mark, `make test-parts` those with it, `make test` both. What takes long is marked ``slow``: `make test` leaves it
to `make test-all`, and CI runs it on one of its two bare machines.
"""

from __future__ import annotations

import fcntl
import functools
import importlib.util
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is the machine's affair: on a busy one the first exceeded 200 ms. All else as it was.
settings.register_profile("unhurried", settings.default, deadline=None)
settings.load_profile("unhurried")

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI") == "true"
LIVE_FLOOR = int(os.environ.get("YARNFAIR_LIVE_FLOOR") or 0)

#: marker -> the programs that must be on the PATH (each entry: any one of the alternatives)
NEEDS: dict[str, list[tuple[str, ...]]] = {
    "java": [("java",), ("javac",), ("mvn",)],
    "browser": [("chromium", "chromium-browser", "google-chrome")],
    "docker": [("docker",)],
    "sshd": [("sshd", "/usr/sbin/sshd")],
    "acl": [("setfacl",), ("getfacl",)],
    "systemd": [("systemd-analyze",)],
    "promtool": [("promtool",), ("prometheus",)],
    "kdc": [(name, f"/usr/sbin/{name}") for name in ("krb5kdc", "kdb5_util", "kadmin.local")],
    "site": [("sphinx-build", str(ROOT / "build/site-venv/bin/sphinx-build"))],
}
#: marker -> the Python packages that must be there
PACKAGES = {"kdc": ("gssapi",)}

#: A test that needs parts is in a file that says so, or in this folder, whose fixtures need them.
_SAYS_PARTS = re.compile(rf"\bmark\.({'|'.join([*NEEDS, 'live'])})\b")
_CLUSTERS = ROOT / "tests" / "cluster"

#: Groups of tests that one worker runs, the longest first: one that is started last is waited for.
LONGEST = (
    "enforce",
    "live-replay",
    "live-hdfs",
    "live-spark",
    "ssh-cluster",
    "live-order",
    "live-rm",
    "live-pair",
    "live-faults",
    "live-secure",
    "live-trouble",
    "live-jobs",
    "live-weighting",
    "live-programs",
    "live-accelerators",
    "live-inrm",
    "enforce-simulated",
    "campaign",
    "regressions",
)


#: Tests that take more than some five seconds of computing, or a cluster of their own: the beginnings of their names.
#: They are marked ``slow``: `make test` leaves them to `make test-all` and to CI, so that it takes minutes.
SLOW = (
    "tests/api/test_public.py::test_a_script_without_a_guard_runs_once",
    "tests/api/test_public.py::test_assess_in_a_script_without_a_guard_has_its_workers",
    "tests/base/test_extensions.py",
    "tests/base/test_workers.py::test_what_workers_used_counts_as_the_commands",
    "tests/bench/test_bench.py::test_cells_are_measured_on_processes_and_on_dask",
    "tests/bench/test_regressions.py",
    "tests/cli/test_enforce_signals.py",
    "tests/cli/test_user_mistakes.py",
    "tests/cli/test_wrong_calls.py::test_a_reader_that_goes_away_leaves_the_exit_code_alone",
    "tests/cluster/test_live_accelerators.py",
    "tests/cluster/test_live_docker",
    "tests/cluster/test_live_faults.py",
    "tests/cluster/test_live_gate.py",
    "tests/cluster/test_live_hdfs.py",
    "tests/cluster/test_live_hive.py",
    "tests/cluster/test_live_inrm.py",
    "tests/cluster/test_live_jobs.py",
    "tests/cluster/test_live_order.py",
    "tests/cluster/test_live_pair.py",
    "tests/cluster/test_live_programs.py",
    "tests/cluster/test_live_readings.py",
    "tests/cluster/test_live_replay.py",
    "tests/cluster/test_live_secure",
    "tests/cluster/test_live_spark.py",
    "tests/cluster/test_live_ssh.py",
    "tests/cluster/test_live_stores.py",
    "tests/cluster/test_live_traps.py",
    "tests/cluster/test_live_trouble.py",
    "tests/cluster/test_live_versions.py",
    "tests/cluster/test_live_weighting.py",
    "tests/control/test_enforce_on_simulated.py",
    "tests/control/test_killed.py",
    "tests/control/test_killed_capacity.py",
    "tests/control/test_preemption.py",
    "tests/control/test_soak.py::test_a_seed_has_one_history_to_the_byte",
    "tests/control/test_soak.py::test_absolute_resources_and_queues_that_are_made_violate_nothing",
    "tests/control/test_soak.py::test_moved_queues_minimum_shares_and_releases_beside_another_cluster_violate_nothing",
    "tests/control/test_soak.py::test_planted_bugs_are_found_quickly",
    "tests/control/test_soak.py::test_the_first_seeds_violate_nothing[8-19]",
    "tests/control/test_soak.py::test_preemption_that_is_switched_on_and_off_violates_nothing",
    "tests/control/test_soak.py::test_preemption_that_kills_stays_within_the_budget",
    "tests/control/test_soak.py::test_what_administrators_and_machines_do_violates_nothing",
    "tests/control/test_virtual_idle.py",
    "tests/control/test_wall_masters.py",
    "tests/docs/test_notebook.py",
    "tests/docs/test_tutorials.py::test_a_tutorial_works_from_its_first_line_to_its_last",
    "tests/experiments/test_as_it_goes.py",
    "tests/experiments/test_campaign.py::test_a_dask_cluster_without_a_worker_is_told_and_not_waited_for_without_end",
    "tests/experiments/test_campaign.py::test_an_interrupt_is_130_and_a_second_campaign_waits_outside",
    "tests/experiments/test_campaign.py::test_cells_on_a_dask_cluster",
    "tests/experiments/test_campaign.py::test_kill_9_at_any_moment_loses_nothing_that_was_done",
    "tests/experiments/test_run.py::test_a_killed_run_is_marked_unfinished_and_may_be_run_again",
    "tests/experiments/test_run.py::test_an_interrupt_is_exit_code_130_and_leaves_readable_directories",
    "tests/fuzz/test_engine.py",
    "tests/fuzz/test_passing_over.py",
    "tests/fuzz/test_planted.py",
    "tests/house/test_core_alone.py",
    "tests/house/test_extending.py",
    "tests/house/test_taken_up.py",
    "tests/integrity/test_planted_runs.py::test_code_that_resolves_an_experiment_was_edited_since",
    "tests/integrity/test_processes.py",
    "tests/jobs/hive/test_hive.py",
    "tests/jobs/spark/test_answers.py",
    "tests/oracle/test_allocation_files.py::test_mutations_of_files_are_refused_by_both_or_by_none",
    "tests/oracle/test_allocation_files.py::test_random_files_load_alike_and_give_equal_shares",
    "tests/oracle/test_inrm.py::test_the_same_assignments",
    "tests/oracle/test_mapreduce_master.py::test_every_heartbeat_of_a_hundred_jobs_is_hadoops",
    "tests/paper/test_allocate_command.py::test_bad_scenarios_get_one_line[capacity: 100000000",
    "tests/predict/test_assess.py",
    "tests/predict/test_rm.py",
    "tests/report/test_kinds.py",
    "tests/report/test_printed.py::test_areas_bars_and_marks_of_any_size_are_drawn",
    "tests/report/test_report.py::test_a_page_about_many_runs_stays_small_and_keeps_few_tables_in_memory",
    "tests/results/test_adding_a_metric.py",
    "tests/sim/serve/test_serve.py",
    "tests/sim/test_adding_a_scheduler.py",
    "tests/sim/test_fifo.py",
    "tests/sim/test_keyed.py",
    "tests/sim/test_observe.py",
    "tests/sim/test_whole.py",
    "tests/studies/test_check_power.py",
    "tests/studies/test_check_real.py",
    "tests/systems/mrorder/test_ordering.py",
)

# A shell that starts this in the background has interrupts ignored, and all that is started from here would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup has hang-ups ignored, and a test that ends a command by one would wait for ever.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _lacking(marker: str) -> list[str]:
    programs = [" or ".join(names) for names in NEEDS[marker] if not any(shutil.which(name) for name in names)]
    packages = [name for name in PACKAGES.get(marker, ()) if importlib.util.find_spec(name) is None]
    return [f"{name} on the PATH" for name in programs] + [f"the package {name}" for name in packages]


@functools.cache
def _may_need_parts(file: Path) -> bool:
    return file.is_relative_to(_CLUSTERS) or _SAYS_PARTS.search(file.read_text(encoding="utf-8")) is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test-parts` imports no files without tests that need parts: seven of eight, and each worker would."""
    only_parts = str(config.option.markexpr).endswith(" and parts")
    if only_parts and collection_path.match("test_*.py") and not _may_need_parts(collection_path):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(name) for name in (*NEEDS, "live")):
            item.add_marker("parts")
            if not _may_need_parts(item.path):
                # `make test` and the bare machines of CI collect all files, so they notice it.
                raise pytest.UsageError(
                    f"{item.nodeid} needs parts, and its file does not say so: no run would have it"
                )
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    mark = item.get_closest_marker("xdist_group")
    return LONGEST.index(mark.args[0]) if mark and mark.args[0] in LONGEST else len(LONGEST)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in NEEDS:
        if item.get_closest_marker(marker) and (lacking := _lacking(marker)):
            reason = f"needs {', '.join(lacking)}"
            if IN_CI:
                pytest.fail(f"{reason}: with CI=true nothing may be left out", pytrace=False)
            pytest.skip(reason)


def pytest_sessionstart(session: pytest.Session) -> None:
    # What does not come to its end, because it is killed, stays incomplete. Workers have the same cache.
    if not hasattr(session.config, "workerinput"):
        _remember_incomplete(session, True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    lacking = (IN_CI and bool(reporter.stats.get("skipped"))) or _live(reporter) < LIVE_FLOOR
    broken_off = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    _remember_incomplete(session, lacking or broken_off)
    if lacking and exitstatus == 0:
        session.exitstatus = 1


def _remember_incomplete(session: pytest.Session, incomplete: bool) -> None:
    """Note for `.ci/again`, which tries failed tests once more, whether others did not run: it runs none of these."""
    # Without its plugin (`-p no:cacheprovider`) there is none.
    if (cache := getattr(session.config, "cache", None)) is not None:
        cache.set("yarnfair/incomplete", incomplete)


def _live(reporter: pytest.TerminalReporter) -> int:
    """How many tests passed against a real ResourceManager."""
    return sum("live" in report.keywords for report in reporter.stats.get("passed", []) if report.when == "call")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    live = _live(terminalreporter)
    if live or LIVE_FLOOR:
        terminalreporter.write_line(f"{live} test(s) passed against a live ResourceManager", red=live < LIVE_FLOOR)
    if live < LIVE_FLOOR:
        terminalreporter.write_line(f"at least {LIVE_FLOOR} have to (YARNFAIR_LIVE_FLOOR)", red=True)
    skipped = terminalreporter.stats.get("skipped", [])
    if IN_CI and skipped:
        terminalreporter.write_line(f"CI=true: {len(skipped)} skipped test(s) count as a failure", red=True)
    elif skipped:
        terminalreporter.write_line(f"left out on this machine: {len(skipped)} test(s), reasons above")


@pytest.fixture(autouse=True, scope="session")
def _one_run_at_a_time() -> Iterator[None]:
    """Runs go one at a time, in the test's own process, where a test does not say ``--jobs``: each process more takes
    over a second of computing before it runs anything."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "cpu_count", lambda: 1)
        yield


@pytest.fixture(scope="session")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """The folder of a data set (seed 1) of this kind and size in bytes, made once for all tests: to be read only."""
    from harness.jobs.data.generate import FolderTarget, generate

    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "data-sets"
    shared.mkdir(exist_ok=True)

    def made(kind: str, size: int) -> Path:
        folder = shared / f"{kind}-{size}"
        with (shared / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            generate(kind, size, 1, FolderTarget(folder))
        return folder

    return made


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
