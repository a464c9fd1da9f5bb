"""Hive on Tez as an engine of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.base.errors import CallError, InputError
from harness.clusters.shared import LocalFolder
from harness.jobs.engines.base import UNKNOWN, Engine, Program, ProgramJob, ProgramRun, Site, Sizing
from harness.jobs.engines.cluster import Sizes, on_this_machine
from harness.jobs.hive import catalogue
from harness.jobs.hive.programs import HivePrograms
from harness.jobs.hive.server import BOTH_MB
from harness.model.jobs import JobSpec, Stage
from harness.traces.spec import ProgramSpec


class Hive(Engine):
    """TPC-H's queries, run by Hive."""

    name = "hive"
    groups = catalogue.GROUPS
    beside_mb = BOTH_MB
    sizes = Sizes(task_mb=768, am_mb=768)

    def programs(self) -> Mapping[str, Program]:
        """Return Hive's programs by name."""
        return catalogue.programs()

    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        """Check a program's settings and sizes. Raises CallError."""
        catalogue.programs()[program.application.lower()].settings_with(program.settings)
        if program.maps is None or program.executors is not None:
            raise CallError(f"{program.application} is Hive's", hint="give maps, and no executors")

    def jobs(self, run: ProgramRun) -> list[ProgramJob]:
        """Return the one job of a run; its tasks are known only while it runs."""
        program, sizing = run.program, run.sizing
        demand = program.map_demand.resource() if program.map_demand else sizing.task
        stage = Stage("tasks", 1, demand, UNKNOWN)
        spec = JobSpec(run.identity, run.queue, "dag", sizing.am, (stage,), name=run.name)
        maps, reduces = run.count(program.maps or 0), run.count(program.reduces or 1)
        return [ProgramJob(self.name, spec, program, run.inputs, sizing, maps, reduces, 0, 1, 1, run.identity)]

    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> HivePrograms:
        """Return the programs for a cluster of this machine's processes; raise InputError for any other."""
        here = site.output is not None or on_this_machine(site.rest)
        if not isinstance(site.shared, LocalFolder) or not here:
            raise InputError(
                "Hive's queries run on clusters of this machine's processes",
                where=site.rest.http.current,
                hint="use --backend local, or run them by Spark (tpch-q...)",
            )
        return HivePrograms(site, site.shared.folder / f"hive-{site.tag}", jobs)
