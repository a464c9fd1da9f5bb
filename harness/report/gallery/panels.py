"""The papers' figures with values: what each shows, and which values of a record are its bars.

A panel names the record and keys of its bars, and the paper's own values where they can be read from its figure, table
or text (drawn in grey). A record has the values of an experiment's runs over seeds (`values`), or of a study.
docs/gallery is drawn from the committed records, `yarnfair plot` also from runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.gallery.keys import expanded, found
from harness.report.gallery.spread import half_width_of, mean_of

Values = dict[str, Any]
#: Keys of a record, or a function that computes the bars from its values.
Bars = str | Callable[[Values], Sequence[float | None]]
#: The colour of the paper's bars in every panel; ours have the others.
THEIRS = 5


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure: groups of bars.

    ``ours``: name -> bars; ``theirs``: name -> the paper's values, None if unreadable; ``factor``: multiplies the
    values of ``ours``; ``level``: position and text of a horizontal line; ``digits``: decimal digits of a bar's label.
    """

    title: str
    y_label: str
    record: str
    groups: Sequence[str]
    ours: Mapping[str, Bars]
    theirs: Mapping[str, Sequence[float | None]] | None = None
    factor: float = 1.0
    level: tuple[float, str] | None = None
    digits: int = 2

    @property
    def series(self) -> list[str]:
        """Return the names of its bars: ours, then the paper's."""
        return [*self.ours, *(self.theirs or {})]

    @property
    def styles(self) -> list[int]:
        """Return the numbers of the series' colours."""
        return [*(style + (style >= THEIRS) for style in range(len(self.ours))), *(THEIRS for _ in self.theirs or {})]


def _items(values: Values, keys: str) -> list[float]:
    return [mean_of(found(values, key)) for key in expanded(keys)]


def bars(panel: Panel, values: Values) -> dict[str, list[float | None]]:
    """Return name -> one bar per group. Raises ValueError if the number of bars and groups differs."""
    drawn: dict[str, list[float | None]] = {}
    for name, given in panel.ours.items():
        heights = _items(values, given) if isinstance(given, str) else given(values)
        drawn[name] = [None if height is None else height * panel.factor for height in heights]
    for name, read in (panel.theirs or {}).items():
        drawn[name] = list(read)
    for name, heights in drawn.items():
        if len(heights) != len(panel.groups):
            raise ValueError(f"{panel.title}: {len(heights)} bars of {name!r} for {len(panel.groups)} groups")
    return drawn


def half_widths(panel: Panel, values: Values) -> dict[str, list[float]]:
    """Return name -> half of the 95 % interval of each bar, 0 if it is not a mean over seeds."""
    none = [0.0] * len(panel.groups)
    drawn = dict.fromkeys(panel.series, none)
    for name, given in panel.ours.items():
        if isinstance(given, str):
            drawn[name] = [half_width_of(found(values, key)) * abs(panel.factor) for key in expanded(given)]
    return drawn


QUEUES = ("Facebook", "Purdue", "TPC-H", "Spark")
_BENCHMARKS = "WordCount;Sort;Grep;InvertedIndex;Classification;HistogramMovies;HistogramRatings;SequenceCount;SelfJoin"
_APPLICATIONS = ("WC", "ST", "PR", "KM", "TT", "AH", "BT")
_APPS = f"applications/[{';'.join(_APPLICATIONS)}]/over_reference"
_SLOTS = ("1/11", "2/10", "4/8", "6/6", "8/4", "10/2", "11/1")


def _of_files(rule: str, what: str) -> Callable[[Values], list[float | None]]:
    """Ordering: the reversed order's value relative to the rule's, by file."""

    def ratios(values: Values) -> list[float | None]:
        return [
            values["files"][name]["rules"]["worst"][what] / values["files"][name]["rules"][rule][what] for name in FILES
        ]

    return ratios


def _bound(rule: str | None, what: str) -> Callable[[Values], list[float | None]]:
    """Ordering: a bound or makespan relative to MK_JR's makespan, by file."""

    def ratios(values: Values) -> list[float | None]:
        found_of = [values["files"][name] for name in FILES]
        return [(f if rule is None else f["rules"][rule])[what] / f["rules"]["mk_jr"]["makespan_s"] for f in found_of]

    return ratios


def _varied(rule: str) -> Callable[[Values], list[float | None]]:
    def speedups(values: Values) -> list[float | None]:
        rows = {(row["jobs"], row["variation_percent"]): row for row in values["rows"]}
        return [mean_of(rows["testbed-100", percent][rule]["makespan_speedup"]) for percent in (0, 20, 40)]

    return speedups


def _gains(target: str) -> Callable[[Values], list[float | None]]:
    return lambda values: [mean_of(row[target]) for row in values["rows"] if row["workload"] == "testbed"]


FILES = ("testbed-20", "testbed-100", "facebook-50", "facebook-100", "facebook-150")
_SHORT_FILES = ("test 20", "test 100", "FB 50", "FB 100", "FB 150")
_ONE_QUEUE = "queues/root.[Facebook;Purdue;TPC-H;Spark]"

#: Name -> panel, in the order of the page.
PANELS: dict[str, Panel] = {
    "ltyarn-7": Panel(
        "LTYARN Figs. 7a, 7c: mean sharing loss", "mean |Omega|", "ltyarn", ("memoryless", "LTYARN"),
        {"ours": "variants/[fair;ltyarn]/sharing_loss"}, None, -1.0, None, 3,
    ),
    "ltyarn-7-degree": Panel(
        "LTYARN Figs. 7b, 7d: fairness degree at the end", "fairness degree", "ltyarn", QUEUES,
        {"memoryless": f"variants/fair/{_ONE_QUEUE}/fairness_degree",
         "LTYARN": f"variants/ltyarn/{_ONE_QUEUE}/fairness_degree"}, level=(1.0, "own partition"),
    ),
    "ltyarn-8": Panel(
        "LTYARN Fig. 8: speed-up of each queue's whole workload over static partitioning",
        "speed-up of the whole workload", "ltyarn", QUEUES,
        {"memoryless": f"variants/fair/{_ONE_QUEUE}/workload_speedup_over_static",
         "LTYARN": f"variants/ltyarn/{_ONE_QUEUE}/workload_speedup_over_static"}, level=(1.0, "static"),
    ),
    "ltyarn-10": Panel(
        "LTYARN Fig. 10: TPC-H's longest wait for a container", "seconds", "ltyarn-hierarchy",
        ("naive", "H-LTRF, T_wait 10 s"),
        {"ours": "variants/[ltyarn-naive;ltyarn-hltrf]/queues/root.Group1.TPC-H/max_wait_s"},
        {"paper": (680.0, None)}, digits=0,
    ),
    "ltyarn-10c": Panel(
        "LTYARN Figs. 10c, 11b: TPC-H's running tasks by T_wait", "running tasks", "t-wait",
        ("2 s", "4 s", "10 s", "80 s"), {"ours": "running_tasks_of_TPC-H/ltyarn,t_wait=[2;4;10;80]"},
        {"paper": (12.0, 6.0, 3.0, None)}, digits=1,
    ),
    "qknober-6a": Panel(
        "QKnober Fig. 6a: makespan over the knob", "seconds", "qknober", ("0", "0.5", "1"),
        {"ours": "variants/qknober,rho=[0;0.5;1]/makespan_s"}, digits=0,
    ),
    "qknober-6b": Panel(
        "QKnober Fig. 6b: soft fairness over the knob", "soft fairness degree", "qknober", ("0", "0.5", "1"),
        {"mean over time": "variants/qknober,rho=[0;0.5;1]/soft_fairness",
         "95th percentile": "variants/qknober,rho=[0;0.5;1]/soft_fairness_p95",
         "Theorem 1": "variants/qknober,rho=[0;0.5;1]/theta"},
    ),
    "qknober-7a": Panel(
        "QKnober Fig. 7a: makespan, at most 4 Facebook jobs at once", "seconds", "qknober",
        ("static", "DRF", "Tetris", "QKnober 0", "QKnober 1"),
        {"ours": "variants/[static;drf;tetris;qknober,rho=0;qknober,rho=1]/makespan_s"}, digits=0,
    ),
    "qknober-7b": Panel(
        "QKnober Fig. 7b: CPU in use, knob 0.5", "per cent", "qknober",
        ("static", "DRF", "Tetris 0.5", "QKnober 0.5"),
        {"ours (vcores)": "variants/[static;drf;tetris;qknober,rho=0.5]/utilisation/vcores"},
        {"paper (CPU)": (46.0, 55.0, 57.0, 69.0)}, 100.0, None, 0,
    ),
    "qknober-8": Panel(
        "QKnober Fig. 8: makespan at knob 1 over this knob's, synthetic load", "speed-up", "qknober-google",
        ("0", "0.2", "0.5", "1"), {"ours": "variants/qknober,rho=[0;0.2;0.5;1]/speedup_over_knob_1"},
        {"paper": (1.267, None, None, 1.0)}, level=(1.0, "knob 1"),
    ),
    "qknober-9": Panel(
        "QKnober Fig. 9: speed-up over static, a tenth of the machines and users", "speed-up", "qknober-users",
        ("100 users", "300 users", "600 users"),
        {"DRF": "variants/drf,users=[10;30;60]/speedup_over_static",
         "QKnober": "variants/qknober,rho=0.2,users=[10;30;60]/speedup_over_static"},
        {"paper, QKnober": (1.21, None, 1.10)}, level=(1.0, "static"),
    ),
    "fawkes-3a": Panel(
        "FAWKES Fig. 3a: time with half of the nodes not core", "times core nodes only", "fawkes-node-types",
        _APPLICATIONS,
        {"transient": f"variants/half-transient/{_APPS}", "transient-core": f"variants/half-transient-core/{_APPS}"},
        {"paper, transient": (None, 1.40, None, None, None, None, None)}, level=(1.0, "core nodes only"),
    ),
    "fawkes-3b": Panel(
        "FAWKES Fig. 3b: time on two sites", "times one site", "fawkes-co-allocation", _APPLICATIONS,
        {"ours": f"variants/two-sites/{_APPS}"}, level=(1.0, "one site"),
    ),
    "fawkes-4": Panel(
        "FAWKES Fig. 4: Sort's speed-up by transient nodes added to 20", "speed-up", "fawkes-growing",
        ("5", "10", "15", "20"), {"ours": "variants/transient-[5;10;15;20]/applications/ST/speedup"},
        level=(1.0, "20 nodes"),
    ),
    "fawkes-5a": Panel(
        "FAWKES Fig. 5a: time for a node to leave, of 20 idle ones", "seconds a node", "fawkes-shrinking-idle",
        ("2 leave", "6", "10", "16"), {"ours": "variants/20-by-[2;6;10;16]/idle/per_node_s"}, digits=1,
    ),
    "fawkes-5b": Panel(
        "FAWKES Figs. 5b, 5c: time when 20 nodes shrink", "times not shrinking", "fawkes-shrinking",
        ("by 2", "4", "6", "8", "10"),
        {"Sort": "variants/by-[2;4;6;8;10]/applications/ST/over_reference",
         "TT": "variants/by-[2;4;6;8;10]/applications/TT/over_reference"}, level=(1.0, "not shrinking"),
    ),
    "fawkes-9": Panel(
        "FAWKES Fig. 9: mean job slowdown by cluster", "slowdown", "fawkes-d",
        ("None", "EQ", "JD", "DD", "TD", "PU", "DU", "RU", "JS", "JT", "TT"),
        {f"c-{n}": f"variants/fawkes-[none;eq;jd;dd;td;pu;du;ru;js;jt;tt]/queues/c-{n}/mean_slowdown" for n in "123"},
    ),
    "fawkes-10": Panel(
        "FAWKES Fig. 10: reconfigurations, WKLD-D", "reconfigurations", "fawkes-d", ("EQ", "TD"),
        {"ours": "variants/fawkes-[eq;td]/reconfigurations"}, {"paper": (None, 16.0)}, digits=1,
    ),
    "fawkes-11": Panel(
        "FAWKES Fig. 11: reconfigurations, WKLD-E", "reconfigurations", "fawkes-e", ("EQ", "TD"),
        {"ours": "variants/fawkes-[eq;td]/reconfigurations"}, {"paper": (None, 5.0)}, digits=1,
    ),
    "progress-5": Panel(
        "Progress share Fig. 5: mean completion", "seconds", "progress-share-crypto", ("Crypto", "Sort"),
        {"two cc1": "variants/two-cc1,progress-share/queues/[Crypto;Sort]/mean_completion_s",
         "cc1 and cg1, equal slots": "variants/cc1+cg1,fair/queues/[Crypto;Sort]/mean_completion_s",
         "cc1 and cg1, progress share": "variants/cc1+cg1,progress-share/queues/[Crypto;Sort]/mean_completion_s"},
        digits=0,
    ),
    "cloud-4": Panel(
        "Progress share Fig. 4: cost by cluster", "dollars", "cloud-production",
        ("5m1", "9m1", "+4m1", "+4c1", "+6c1", "+8c1", "+12c1", "+15c1"),
        {"ours": "variants/[5m1;9m1;5m1+4m1;5m1+4c1;5m1+6c1;5m1+8c1;5m1+12c1;5m1+15c1]/cost_dollars"},
    ),
    "order-3.4": Panel(
        "Thesis Fig. 3.4: makespan of the reversed order over the rule's", "speed-up", "ordering-greedy", _SHORT_FILES,
        {"MK_JR": _of_files("mk_jr", "makespan_s"), "MK_TCT_JR": _of_files("mk_tct_jr", "makespan_s")},
        {"thesis, MK_JR": (1.24, None, None, None, None)}, level=(1.0, "reversed order"),
    ),
    "order-3.5": Panel(
        "Thesis Fig. 3.5: total completion time, the same", "speed-up", "ordering-greedy", _SHORT_FILES,
        {"MK_JR": _of_files("mk_jr", "total_completion_time_s"),
         "MK_TCT_JR": _of_files("mk_tct_jr", "total_completion_time_s")}, level=(1.0, "reversed order"),
    ),
    "order-3.6": Panel(
        "Thesis Fig. 3.6: bounds over MK_JR's makespan", "times MK_JR", "ordering-greedy", _SHORT_FILES,
        {"lower bound": _bound(None, "lower_bound_s"), "upper bound of MK_JR": _bound("mk_jr", "upper_bound_s"),
         "reversed order": _bound("worst", "makespan_s")}, level=(1.0, "MK_JR"),
    ),
    "order-3.7": Panel(
        "Thesis Fig. 3.7: makespan speed-up when task times vary, 100 jobs", "speed-up", "ordering-variation",
        ("0 %", "20 %", "40 %"), {"MK_JR": _varied("mk_jr"), "MK_TCT_JR": _varied("mk_tct_jr")},
        level=(1.0, "reversed order"),
    ),
    "order-3.9": Panel(
        "Thesis Fig. 3.9: what MROrder gains, testbed", "per cent", "mrorder-online",
        ("10 jobs", "20", "30", "50", "100"),
        {"makespan": _gains("makespan"), "total completion time": _gains("tct")}, digits=0,
    ),
    "order-3.10": Panel(
        "Thesis Fig. 3.10: the estimator's greatest error over 24 orders", "per cent of the real time", "estimator",
        ("makespan", "total completion"),
        {"from one earlier run": "errors/history/[makespan_s;total_completion_time_s]/greatest",
         "from the run's own times": "errors/own/[makespan_s;total_completion_time_s]/greatest"},
        {"thesis: at most": (8.0, None)}, 100.0, None, 1,
    ),
    "dynamicmr-4.10": Panel(
        "Thesis Fig. 4.10: nine jobs by map/reduce slots a node", "speed-up over 1/11", "dynamicmr-slots", _SLOTS,
        {"static slots": "speedup_over_1_11/9 jobs/hadoop/[0;1;2;3;4;5;6]",
         "PI-DHSA": "speedup_over_1_11/9 jobs/pi-dhsa/[0;1;2;3;4;5;6]"}, digits=1,
    ),
    "dynamicmr-4.11": Panel(
        "Thesis Fig. 4.11: borrowing, 6/6 slots", "speed-up over no lending", "dynamicmr-borrowed",
        ("0 %", "20 %", "40 %", "60 %", "80 %", "100 %"),
        {"map slots lent to reduces": "speedup/6~16/Pec_M varies, Pec_R 0/[0;2;4;6;8;10]",
         "reduce slots lent to maps": "speedup/6~16/Pec_R varies, Pec_M 0/[0;2;4;6;8;10]"},
    ),
    "dynamicmr-4.12": Panel(
        "Thesis Fig. 4.12: SEPB over LATE", "speed-up", "dynamicmr-sepb", ("5 jobs", "10 jobs", "20 jobs"),
        {"ours": "percentageOfJobsCheckedForPendingTasks/[5 jobs;10 jobs;20 jobs]/0.2/speedup"}, level=(1.0, "LATE"),
    ),
    "dynamicmr-4.13": Panel(
        "Thesis Fig. 4.13: local maps, one replica, one job", "per cent", "dynamicmr-locality",
        ("16 maps", "32 maps", "160 maps"),
        {name: f"loads/1 replicas, 1 x [16;32;160] maps/{name}/node_local"
         for name in ("no delay", "delay", "delay and PreScheduling")}, None, 100.0, None, 0,
    ),
    "dynamicmr-4.14": Panel(
        "Thesis Fig. 4.14: speed-up by Slot PreScheduling, 16 maps", "speed-up", "dynamicmr-benchmarks",
        _BENCHMARKS.split(";"), {"ours": f"benchmarks/[{_BENCHMARKS}]/16/speedup"}, level=(1.0, "delay scheduling"),
    ),
    "dynamicmr-4.16": Panel(
        "Thesis Fig. 4.16: static slots' time over DynamicMR's", "speed-up", "dynamicmr-whole",
        ("5 jobs", "10 jobs", "20 jobs", "30 jobs"),
        {"ours": "fair/[5 jobs;10 jobs;20 jobs;30 jobs]/dynamicmr/speedup"}, level=(1.0, "static slots"),
    ),
    "dynamicmr-4.17": Panel(
        "Thesis Fig. 4.17: containers' time over DynamicMR's", "speed-up", "dynamicmr-yarn",
        ("5 jobs", "10 jobs", "20 jobs", "30 jobs"),
        {"ours": "loads/[5 jobs;10 jobs;20 jobs;30 jobs]/dynamicmr/speedup"},
        level=(1.0, "YARN's containers"),
    ),
}  # fmt: skip
