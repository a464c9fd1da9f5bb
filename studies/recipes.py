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
            f"yarnfair run {arguments} --no-report --out {{out}}",
            f"python -m studies.{writer} {{out}} -o {{file}}",
        )
    )


def _study(arguments: str, *of_the_machine: str) -> Recipe:
    return Recipe((f"python -m studies.{arguments}",), of_the_machine)


#: Records that this machine can remake alone: the same commands give the same values everywhere.
SIMULATED: dict[str, Recipe] = {
    "worked-examples": _study("runs_record examples -o {file}"),
    "ltyarn-small-simulated": _run("ltyarn-small", "runs_record"),
    "ltyarn": _run("ltyarn", "runs_record"),
    "ltyarn-hierarchy": _run("ltyarn-hierarchy", "runs_record"),
    "t-wait": _run("t-wait", "runs_record"),
    "quantum": _run("quantum", "runs_record"),
    "outside": _run("outside", "runs_record"),
    "outside-60s": _run("outside-60s", "runs_record"),
    "outside-bound": _run(
        "outside --policy fair,ltrf,ltrf@outside --set period=15 --set horizon_s=auto", "runs_record"
    ),
    "outside-hierarchy": _run("outside-hierarchy", "runs_record"),
    "last-loss": _study("last_loss -o {file}"),
    "mrorder": _run("mrorder", "runs_record"),
    "cloud-production": _run("cloud-production", "runs_record"),
    "progress-share-crypto": _run("progress-share-crypto", "runs_record"),
    "fawkes-node-types": _run("fawkes-node-types", "mr_record"),
    "fawkes-co-allocation": _run("fawkes-co-allocation", "mr_record"),
    "fawkes-growing": _run("fawkes-growing", "mr_record"),
    "fawkes-growing-st": _run("fawkes-growing-st", "mr_record"),
    "fawkes-growing-wc": _run("fawkes-growing-wc", "mr_record"),
    "fawkes-shrinking": _run("fawkes-shrinking", "mr_record"),
    "fawkes-shrinking-idle": _run("fawkes-shrinking-idle", "mr_record"),
    "fawkes-arriving": _run("fawkes-arriving", "mr_record"),
    "fawkes-d": _run("fawkes-d", "mr_record"),
    "fawkes-d-fractions": _run("fawkes-d --policy fawkes-ru --set normalised=false", "mr_record"),
    "fawkes-e": _run("fawkes-e", "mr_record"),
    "fawkes-yarn": _run(
        "fawkes-yarn --policy fair,fawkes-none@outside,fawkes-eq@outside,fawkes-td@outside", "runs_record"
    ),
    "fawkes-yarn-preemption": _run(
        "fawkes-yarn-preemption --policy fawkes-none@outside,fawkes-eq@outside,fawkes-td@outside", "runs_record"
    ),
    "fawkes-real-simulated": _run("fawkes-real", "weighting_record"),
    "others-real-simulated": _run("others-real", "weighting_record"),
    "qknober": _run("qknober", "runs_record"),
    "qknober-soft-fairness": _run("qknober", "mr_record"),
    "qknober-few-apps": _run("qknober-few-apps", "mr_record"),
    "qknober-users": _run("qknober-users", "mr_record"),
    "qknober-users-1000": _run("qknober-users-1000 --seed 1", "mr_record"),
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
