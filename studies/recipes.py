"""What makes each committed record in docs/records, by name.

A recipe is a list of commands. ``{out}`` stands for a folder for run directories, ``{file}`` for the record that the
last command writes; a last command that names no ``{file}`` prints the record.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Of a search that a time limit stopped, only what the limit does not decide.
_SEARCHED = ("nodes", "wall_s")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Commands that make a record, and the keys whose values the machine's speed decides."""

    commands: tuple[str, ...]
    of_the_machine: tuple[str, ...] = ()


def _run(arguments: str, writer: str) -> Recipe:
    return Recipe(
        (
            f"yarnfair run {arguments} --no-report --jobs 1 --out {{out}}",
            f"python -m harness.experiments.{writer} {{out}} -o {{file}}",
        )
    )


def _study(arguments: str, *of_the_machine: str) -> Recipe:
    return Recipe((f"python -m harness.experiments.{arguments}",), of_the_machine)


#: Records that this machine can remake alone: the same commands give the same values everywhere.
SIMULATED: dict[str, Recipe] = {
    "worked-examples": _study("records examples -o {file}"),
    "ltyarn-small-simulated": _run("ltyarn-small", "records"),
    "ltyarn": _run("ltyarn", "records"),
    "ltyarn-hierarchy": _run("ltyarn-hierarchy", "records"),
    "t-wait": _run("t-wait", "records"),
    "quantum": _run("quantum", "records"),
    "outside": _run("outside", "records"),
    "outside-60s": _run("outside-60s", "records"),
    "outside-bound": _run("outside --policy fair,ltrf,ltrf@outside --set period=15 --set horizon_s=auto", "records"),
    "outside-hierarchy": _run("outside-hierarchy", "records"),
    "last-loss": _study("last_loss -o {file}"),
    "mrorder": _run("mrorder", "records"),
    "cloud-production": _run("cloud-production", "records"),
    "progress-share-crypto": _run("progress-share-crypto", "records"),
    "fawkes-node-types": _run("fawkes-node-types", "mrrecords"),
    "fawkes-co-allocation": _run("fawkes-co-allocation", "mrrecords"),
    "fawkes-growing": _run("fawkes-growing", "mrrecords"),
    "fawkes-growing-st": _run("fawkes-growing-st", "mrrecords"),
    "fawkes-growing-wc": _run("fawkes-growing-wc", "mrrecords"),
    "fawkes-shrinking": _run("fawkes-shrinking", "mrrecords"),
    "fawkes-shrinking-idle": _run("fawkes-shrinking-idle", "mrrecords"),
    "fawkes-arriving": _run("fawkes-arriving", "mrrecords"),
    "fawkes-d": _run("fawkes-d", "mrrecords"),
    "fawkes-e": _run("fawkes-e", "mrrecords"),
    "fawkes-yarn": _run("fawkes-yarn --policy fair,fawkes-none@outside,fawkes-eq@outside,fawkes-td@outside", "records"),
    "fawkes-yarn-preemption": _run(
        "fawkes-yarn-preemption --policy fawkes-none@outside,fawkes-eq@outside,fawkes-td@outside", "records"
    ),
    "fawkes-real-simulated": _run("fawkes-real", "weighting_record"),
    "others-real-simulated": _run("others-real", "weighting_record"),
    "qknober": _run("qknober", "records"),
    "qknober-soft-fairness": _run("qknober", "mrrecords"),
    "qknober-few-apps": _run("qknober-few-apps", "mrrecords"),
    "qknober-users": _run("qknober-users", "mrrecords"),
    "qknober-users-1000": _run("qknober-users-1000 --seed 1", "mrrecords"),
    "qknober-synthetic": Recipe(("python -m studies.synthetic -o {file}",)),
    **{
        f"dynamicmr-{what}": _study(f"dynamicmr {what} --seeds {1 if what == 'static' else 5}")
        for what in (
            *("slots", "early", "borrowed", "sepb", "locality", "benchmarks"),
            *("whole", "static", "yarn", "late", "outside"),
        )
    },
    "ordering-variation": _study("ordering variation --seeds 3"),
    "ordering-greedy": _study("ordering greedy --limit 20 --seeds 20", *_SEARCHED),
    "ordering-search": _study("ordering search --limit 60", *_SEARCHED),
    "mrorder-intervals": _study("ordering_online intervals --seeds 5 --step 50 --most 250"),
    "mrorder-online": _study("ordering_online online --seeds 5"),
}

#: Records of real containers: no run is like another, and each takes a cluster for minutes or hours.
REAL = (
    *("cloud-small", "control-effect", "dynamicmr-outside-real", "estimator", "fawkes-real", "ltyarn-real"),
    *("ltyarn-real-hierarchy", "ltyarn-real-hierarchy-replayed", "ltyarn-real-replayed", "ltyarn-real-small"),
    *("ltyarn-real-small-docker", "ltyarn-small", "ltyarn-small-docker", "others-real", "outside-real"),
    *("sim-against-real", "tpch-hive"),
)
#: Records of how long something takes: they are this machine's.
TIMES = ("bench", "control-cost", "qknober-decisions")
