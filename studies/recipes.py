"""What makes each committed record in docs/records, by name.

A recipe is a list of commands. ``{out}`` stands for a folder for run directories, ``{file}`` for the record that the
last command writes; a last command that names no ``{file}`` prints the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: Of a search that a time limit stopped, only what the limit does not decide.
_SEARCHED = ("nodes", "wall_s")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Commands that make a record, and the keys whose values the machine's speed decides."""

    commands: tuple[str, ...]
    of_the_machine: tuple[str, ...] = ()

    def command(self, name: str) -> str:
        """What somebody types to make the record."""
        return " && ".join(self.commands).format(out=f"runs/{name}", file=f"docs/records/{name}.json")


def _run(arguments: str, view: str | None = None) -> Recipe:
    """Runs of an experiment, and what `studies.views` keeps of them."""
    return Recipe(
        (
            f"yarnfair run {arguments} --no-report --out {{out}}",
            f"python -m studies.from_runs {{out}}{f' --view {view}' if view else ''} -o {{file}}",
        )
    )


def _study(arguments: str, *of_the_machine: str) -> Recipe:
    return Recipe((f"python -m studies.{arguments}",), of_the_machine)


#: Records that this machine can remake alone: the same commands give the same values everywhere.
SIMULATED: dict[str, Recipe] = {
    "worked-examples": _study("worked_examples -o {file}"),
    "ltyarn-small-simulated": _run("ltyarn-small"),
    "ltyarn": _run("ltyarn --seed 1-10"),
    "ltyarn-thesis": _run("ltyarn-thesis"),
    "ltyarn-sensitivity": _study("sensitivity -o {file}"),
    "application-cap": _study("application_cap -o {file}"),
    "ltyarn-hierarchy": _run("ltyarn-hierarchy --seed 1-10"),
    "t-wait": _run("t-wait"),
    "quantum": _run("quantum"),
    "fit": _run("fit"),
    "fit-preemption": _run("fit-preemption"),
    "outside": _run("outside"),
    "outside-60s": _run("outside-60s"),
    "outside-bound": _run("outside --policy fair,ltrf,ltrf@outside --set period=15 --set horizon_s=auto"),
    "outside-hierarchy": _run("outside-hierarchy"),
    "outside-capacity": _run("outside-capacity"),
    "outside-capacity-hierarchy": _run("outside-capacity-hierarchy"),
    "outside-capacity-priority": _run("outside-capacity-priority"),
    "bound": _study("bound -o {file}"),
    "half-life": _study("half_life -o {file}"),
    "check-power": _study("check_power -o {file}"),
    "last-loss": _study("last_loss -o {file}"),
    "lasting-loss": _study("lasting_loss -o {file}"),
    "lasting-loss-map": _study("lasting_loss --map -o {file}"),
    "mrorder": _run("mrorder"),
    "cloud-production": _run("cloud-production"),
    "cloud-range": _study("cloud_range -o {file}"),
    "progress-share-crypto": _run("progress-share-crypto"),
    "fawkes-node-types": _run("fawkes-node-types"),
    "fawkes-co-allocation": _run("fawkes-co-allocation"),
    "fawkes-growing": _run("fawkes-growing"),
    "fawkes-growing-st": _run("fawkes-growing-st"),
    "fawkes-growing-wc": _run("fawkes-growing-wc"),
    "fawkes-shrinking": _run("fawkes-shrinking"),
    "fawkes-shrinking-idle": _run("fawkes-shrinking-idle"),
    "fawkes-arriving": _run("fawkes-arriving"),
    "fawkes-d": _run("fawkes-d"),
    "fawkes-d-early": _run("fawkes-d-early"),
    "fawkes-d-fractions": _run("fawkes-d --seed 1-5 --policy fawkes-ru --set normalised=false"),
    "fawkes-e": _run("fawkes-e"),
    "fawkes-yarn": _run("fawkes-yarn --policy fair,fawkes-none@outside,fawkes-eq@outside,fawkes-td@outside"),
    "fawkes-yarn-preemption": _run(
        "fawkes-yarn-preemption --policy fawkes-none@outside,fawkes-eq@outside,fawkes-td@outside"
    ),
    "preemption-budget": _study("preemption_budget -o {file}"),
    "fawkes-real-simulated": _run("fawkes-real", "minimum-shares"),
    "others-real-simulated": _run("others-real", "minimum-shares"),
    "qknober": _run("qknober", "summary"),
    "qknober-google": _run("qknober-google", "summary"),
    "qknober-loads": _study("qknober_loads -o {file}"),
    "qknober-users": _run("qknober-users", "summary"),
    "qknober-window": _run("qknober-window", "summary"),
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
    "mrorder-intervals": _study("ordering_online intervals --seeds 5 --step 50 --most 400"),
    "mrorder-online": _study("ordering_online online --seeds 5"),
}

#: Measurements that are written down before they are made (studies.outside_pairs): records once they have been.
PLANNED = ("outside-pairs",)
_RECORDS = Path(__file__).resolve().parents[1] / "docs" / "records"
#: Records of real containers: no run is like another, and each takes a cluster for minutes or hours.
REAL = (
    *(
        "assessed",
        "assessed-spark",
        "capacity-times",
        "check-real",
        "cloud-small",
        "control-effect",
        "dynamicmr-outside-real",
        "estimator",
    ),
    *("fawkes-real", "ltyarn-real", "ltyarn-real-hierarchy", "ltyarn-real-hierarchy-replayed"),
    *("ltyarn-real-replayed", "ltyarn-real-small", "ltyarn-real-small-docker", "ltyarn-small"),
    *("ltyarn-small-docker", "others-real", "outside-real"),
    *("outside-real-short", "planned", "preempted", "real-faults"),
    *("mapreduce-master", "sim-against-real", "sim-against-real-capacity", "spark-dynamic", "steered"),
    *("store-writes", "tpch-hive"),
    # Other releases' classes, of jars that no simulated record needs.
    "versions",
    # A trace that is too large for this repository.
    "hoarding",
    *(name for name in PLANNED if (_RECORDS / f"{name}.json").exists()),
)
#: Records of how long something takes: they are this machine's.
TIMES = (
    *("bench", "control-cost", "control-cost-capacity", "qknober-decisions"),
    *(name for name in ("first-run", "largest", "peers") if (_RECORDS / f"{name}.json").exists()),
)
