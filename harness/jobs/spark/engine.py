"""Spark as an engine of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.base.errors import CallError
from harness.clusters.shared import LocalFolder
from harness.jobs.engines.base import UNKNOWN, Engine, Program, ProgramJob, ProgramRun, Request, Site, Sizing
from harness.jobs.engines.cluster import Sizes
from harness.jobs.spark import catalogue
from harness.jobs.spark.plan import SparkSizes
from harness.jobs.spark.programs import SparkPrograms, sizes_of
from harness.model.jobs import JobSpec, Stage
from harness.traces.spec import DemandSpec, ExecutorsSpec, ProgramSpec
from harness.yarn.rest import RestClient


class Spark(Engine):
    """TPC-H's queries by Spark SQL, k-means and ALS by MLlib."""

    name = "spark"
    groups = catalogue.GROUPS
    sizes = Sizes(task_mb=1024, am_mb=1024)

    def programs(self) -> Mapping[str, Program]:
        """Return Spark's programs by name."""
        return catalogue.programs()

    def check(self, program: ProgramSpec, sizing: Sizing) -> None:
        """Check a program's settings and executors. Raises CallError."""
        catalogue.programs()[program.application.lower()].settings_with(program.settings)
        if program.executors is None:
            raise CallError(f"{program.application} is Spark's", hint="give executors")
        if program.executors.dynamic is not None:
            what = f"{program.application} holds its executors to the end; dynamic allocation is only simulated"
            raise CallError(what, hint="leave executors.dynamic out")
        sizes_of(program, sizing, 1)

    def jobs(self, run: ProgramRun) -> list[ProgramJob]:
        """Return the job of a run, with its executors."""
        program, sizing, asked = run.program, run.sizing, run.program.executors
        assert asked is not None
        executors, demand = run.count(asked.count), asked.demand.resource()
        spec = JobSpec(
            run.identity,
            run.queue,
            "spark",
            sizing.am,
            (Stage("tasks", 1, demand, UNKNOWN),),
            name=run.name,
            executors=executors,
            executor_demand=demand,
            executor_slots=asked.slots,
        )
        maps, reduces = run.count(program.maps or 4), run.count(program.reduces or 2)
        return [ProgramJob(self.name, spec, program, run.inputs, sizing, maps, reduces, executors, 1, 1, run.identity)]

    def load(self, site: Site, jobs: Sequence[ProgramJob]) -> SparkPrograms:
        """Return the programs; a local shared folder is created first."""
        if isinstance(site.shared, LocalFolder):
            site.shared.write({})
        return SparkPrograms(site, jobs)

    def sized(self, request: Request) -> tuple[ProgramSpec, Sizing]:
        """Return the program with its executors, and its sizing."""
        program, sizing = super().sized(request)
        task_mb, am_mb, cores = sizing.task.memory_mb, sizing.am.memory_mb, request.executor_cores
        sizes = SparkSizes(request.executors, task_mb, cores, am_mb, request.maps, request.reduces)
        demand = DemandSpec(memory_mb=sizes.executor_mb, vcores=cores)
        executors = ExecutorsSpec(count=sizes.executors, slots=cores, demand=demand)
        return program.model_copy(update={"executors": executors}), Sizing(sizes.am, sizes.executor)

    def check_room(self, rest: RestClient, job: ProgramJob) -> None:
        """No-op: `SparkPrograms.prepare` refuses programs that do not fit, because executors are held to the end."""
