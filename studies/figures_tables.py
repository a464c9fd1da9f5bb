"""Tables of the pages of figures, from their records: a row a setting, a column a figure.

DynamicMR's and job ordering's are in files of their own. They measure nothing. `studies.figures`
puts them where a page names them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from harness.report.gallery.spread import mean_of
from studies.seeds import shown
from studies.tables import Values, markdown
from studies.views import FLOW_S

PERIODS = (1, 15, 60)
AFFINITIES = ("0", "0.25", "0.5", "0.75", "1")
#: Places in the tree of the FAWKES experiments.
CLUSTERS = ("c-1", "c-2", "c-3")
#: The policies of Fig. 9 in the paper's order.
POLICIES = ("none", "eq", "jd", "dd", "td", "pu", "du", "ru", "js", "jt", "tt")


def horizons(values: Values, given: Sequence[str]) -> str:
    """LTRF from outside by horizon and period: loss integral and last loss, over those of LTRF inside."""
    found = values["variants"]
    rows = [
        (
            horizon,
            *(
                f"{mean_of(found[f'ltrf@outside,period_s={period},horizon_s={horizon}'][key]):.2f}"
                for key in ("loss_over_ltrf", "last_loss_sum_over_ltrf")
                for period in PERIODS
            ),
        )
        for horizon in given
    ]
    loss = [f"loss integral, every {period} s" for period in PERIODS]
    return markdown(("H, s", *loss, *(f"last loss, every {period} s" for period in PERIODS)), rows)


def affinities(values: Values) -> str:
    """H-LTRF from outside by T_wait and affinity: the loss, its ratio, the longest wait and how far it is in bounds."""
    found = values["variants"]
    rows = []
    for t_wait in ("5", "20"):
        inside = mean_of(found[f"hltrf,t_wait={t_wait}"]["sharing_loss_integral"])
        for affinity in AFFINITIES:
            own = found[f"hltrf@outside,t_wait={t_wait},affinity={affinity}"]
            loss = mean_of(own["sharing_loss_integral"])
            rows.append(
                (
                    f"{t_wait} s",
                    affinity,
                    f"{loss:,.0f} s of {inside:,.0f} s",
                    f"{mean_of(own['loss_over_hltrf,t_wait=5']):.2f}",
                    f"{own['longest_wait_s']['max']:.1f} s",
                    f"{own['wait_beyond_bound_s']['max']:.1f} s",
                )
            )
    head = (
        "T_wait",
        "affinity",
        "loss integral, of inside's",
        "over inside with T_wait 5 s",
        "longest wait",
        "beyond the bound",
    )
    return markdown(head, rows)


def fits(values: Values) -> str:
    """Memoryless sharing and LTRF where tasks do not fit: what it costs whom."""
    names = {"fair": "memoryless", "ltrf": "LTRF, `fit=next`", "ltrf-wait": "LTRF, `fit=wait`"}
    rows = []
    for variant, name in names.items():
        own = values["variants"][variant]
        queues = {queue: own["queues"][f"root.{queue}"] for queue in ("small", "middle", "large")}
        rows.append(
            (
                name,
                f"{mean_of(own['sharing_loss']):.3f}",
                *(f"{mean_of(queue['fairness_degree']):.2f}" for queue in queues.values()),
                *(f"{mean_of(queues[name]['mean_completion_s']):.0f} s" for name in ("small", "large")),
                f"{100 * mean_of(own['memory_used']):.1f} %",
            )
        )
    degrees = [f"fairness degree, {queue}" for queue in ("small", "middle", "large")]
    return markdown(("policy", "mean loss", *degrees, "mean job, small", "large", "memory in use"), rows)


def queues(values: Values) -> str:
    """LTYARN's Figs. 7b, 7d and 8: fairness degree at the end, and speed-up over static, of each queue."""
    names = {"fair": "memoryless", "ltyarn": "LTYARN", "ltrf": "plain"}
    rows = [
        (
            queue,
            *(
                shown(values["variants"][variant]["queues"][f"root.{queue}"][key])
                for key in ("fairness_degree", "workload_speedup_over_static")
                for variant in names
            ),
        )
        for queue in ("Facebook", "Purdue", "TPC-H", "Spark")
    ]
    head = [f"{what}, {name}" for what in ("fairness degree", "speed-up") for name in names.values()]
    return markdown(("queue", *head), rows)


#: The periods of demand above the share that LTYARN's section 7.3 names, seconds.
_OVERLOADED = {
    "Facebook": "204 to 260",
    "Purdue": "24 to 131, and 204 to 260",
    "TPC-H": "28 to 146",
    "Spark": "28 to 118",
}


def flow(values: Values) -> str:
    """LTYARN's Fig. 6: demand above the share, the most that is held, accumulated resources, in the first 260 s."""
    rows = []
    for queue, theirs in _OVERLOADED.items():
        own = values["first_260_s"]["ltyarn"][f"root.{queue}"]
        periods = ", ".join(f"{begin:.0f} to {end:.0f}" for begin, end in own["overloaded_s"])
        most = f"{shown(own['most_of_share'])} at {shown(own['most_at_s'], '.0f')} s"
        rows.append((queue, periods, theirs, most, *(shown(own["accumulated_s"][f"{at}"], ".1f") for at in FLOW_S)))
    head = ("queue", "demand above its share, s", "theirs", "most held, of its share")
    return markdown((*head, *(f"accumulated at {at} s" for at in FLOW_S)), rows)


def growing(values: Values) -> str:
    """FAWKES' Fig. 7: when the last job of each MR-cluster ends."""
    variants = [("None", "", "fawkes-none")]
    variants += [
        (name.upper(), growth, f"fawkes-{name},growth={growth}")
        for growth in ("transient", "transient-core")
        for name in ("eq", "td")
    ]
    rows = [
        (
            policy,
            growth,
            *(f"{mean_of(values['variants'][variant]['queues'][name]['last_end_s']):,.0f} s" for name in CLUSTERS),
        )
        for policy, growth, variant in variants
    ]
    return markdown(("policy", "grows by", *(f"last end of {name}" for name in CLUSTERS)), rows)


def slowdowns(values: Values) -> str:
    """FAWKES' Fig. 9: mean job slowdown of each MR-cluster under each policy, and how far all are below None."""
    rows = []
    for policy in POLICIES:
        own = values["variants"][f"fawkes-{policy}"]
        below = own.get("mean_slowdown_below_none")
        rows.append(
            (
                "None" if policy == "none" else policy.upper(),
                *(f"{mean_of(own['queues'][name]['mean_slowdown']):.2f}" for name in CLUSTERS),
                "" if policy == "none" or below is None else shown(below, ".3f"),
                *_td(own, policy),
            )
        )
    head = ("all jobs below None, part", "TD better, worse, the same in", "TD below it, part")
    return markdown(("policy", *(f"slowdown, {name}" for name in CLUSTERS), *head), rows)


def _td(own: Values, policy: str) -> tuple[str, str]:
    """A policy beside TD, over the pairs that the seeds make."""
    if policy == "td":
        return "", ""
    found = own["against_td"]
    return f"{found['td_better']}, {found['td_worse']}, {found['same']}", shown(found["td_below"], ".3f")


def users(values: Values) -> str:
    """QKnober's Fig. 9 over the number of users, each ± half of the 95 % interval over seeds."""
    rules = {"DRF": "drf", "Tetris `0.2`": "tetris,f=0.2", "QKnober `0.2`": "qknober,rho=0.2"}
    given = (10, 30, 60)
    rows = [
        (name, *(shown(values["variants"][f"{rule},users={number}"]["speedup_over_static"]) for number in given))
        for name, rule in rules.items()
    ]
    rows += [
        (
            f"{name}: over DRF",
            *(shown(values["variants"][f"{rule},users={number}"]["speedup_over_drf"], ".3f") for number in given),
        )
        for name, rule in rules.items()
        if rule != "drf"
    ]
    return markdown(("users (theirs)", *(f"{number} ({10 * number})" for number in given)), rows)


def knob_loads(values: Values) -> str:
    """QKnober's rules by what the synthetic load assumes: per cent of the makespan, in how many of the seeds."""
    figures = {
        "knob 0 over knob 1": "knob_0_over_knob_1",
        "QKnober over DRF": "qknober_over_drf",
        "QKnober over Tetris": "qknober_over_tetris",
        "Tetris over DRF": "tetris_over_drf",
    }
    rows = []
    for name, own in values["loads"].items():
        gains = [
            f"{shown(own[key], '.1f', ' %', 100.0)}, {own['seeds'] * mean_of(own[f'{key}_faster']):.0f}"
            for key in figures.values()
        ]
        soft = [f"{mean_of(own['soft_fairness'][f'qknober {knob}']):.2f}" for knob in (0, 1)]
        rows.append((name, *gains, ", ".join(soft)))
    return markdown(("load", *figures, "soft fairness at knob 0, 1"), rows)


def windows(values: Values) -> str:
    """QKnober's C3: makespan by the pending tasks that a user shows, ± half of the 95 % interval over seeds."""
    rules = {"DRF": "drf", "Tetris `0.2`": "tetris,f=0.2", "QKnober `0.2`": "qknober,rho=0.2"}
    given = ("1", "8", "64", "all")
    rows = [
        (name, *(shown(values["variants"][f"{rule},window={window}"]["makespan_s"], ",.0f") for window in given))
        for name, rule in rules.items()
    ]
    return markdown(("oldest pending tasks shown", *given), rows)


def outside_pairs(values: Values) -> str:
    """LTRF from outside less LTYARN inside, pair by pair, and what the intervals decide."""
    names = {
        "sharing_loss_integral": ("sharing loss integral", " s", ".1f"),
        "last_loss_s": ("last loss", " s", ".0f"),
        "sharing_benefit": ("sharing benefit", "", ".2f"),
    }
    inside, outside, less = (
        values["variants"]["ltyarn-in-rm"],
        values["variants"]["ltrf@outside"],
        values["outside_less_inside"],
    )
    rows = []
    for key, (name, unit, form) in names.items():
        mean, half = less[key]["mean"], less[key]["ci95"]
        decided = "no" if abs(mean) <= half else "yes: less from outside" if mean < 0 else "yes: more from outside"
        rows.append((name, *(shown(one[key], form, unit) for one in (inside, outside, less)), decided))
    head = ("figure", "LTYARN inside the RM", "LTRF from outside", "outside less inside", "decided")
    return markdown(head, rows) + f"\n\nLess loss from outside in {less['less_loss']} of {less['runs']} pairs."


def mapreduce_jobs(values: Values) -> str:
    """Each real MapReduce job and its simulation, real / simulated."""
    rows = []
    for job in values["runs"]:
        both = {
            key: f"{job[key]['real']} / {job[key]['simulated']}"
            for key in ("completion_s", "first_reduce_s", "early", "early_s", "ramped_down", "preempted")
        }
        name = f"{job['scenario']}, {job['scheduler']}" + (", the other job" if job["job"] else "")
        parts = [f"{100 * job[f'{key}_difference']:.1f} %" for key in ("completion", "maps_asked", "reduces_asked")]
        rows.append((name, f"{job['load_average']:.0f}", *both.values(), ", ".join(parts)))
    head = (
        "job",
        "load",
        "completion, s",
        "first reduce asked for, s",
        "reduces held when the last map ends",
        "seconds that reduces hold until then",
        "asks taken back",
        "reduces preempted",
        "differences: completion, maps asked for, reduces asked for",
    )
    return markdown(head, rows)


#: Name -> (record, table).
TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "horizons": ("outside", partial(horizons, given=("auto", "20", "80", "160", "320", "640", "1280"))),
    "horizons-60s": ("outside-60s", partial(horizons, given=("auto", "60", "240", "480", "960", "1920"))),
    "affinities": ("outside-hierarchy", affinities),
    "outside-pairs": ("outside-pairs", outside_pairs),
    "mapreduce-jobs": ("mapreduce-master", mapreduce_jobs),
    "fit": ("fit", fits),
    "fit-preemption": ("fit-preemption", fits),
    "ltyarn-flow": ("ltyarn", flow),
    "ltyarn-queues": ("ltyarn", queues),
    "fawkes-7-wc": ("fawkes-growing-wc", growing),
    "fawkes-7-st": ("fawkes-growing-st", growing),
    "fawkes-9": ("fawkes-d", slowdowns),
    "qknober-9": ("qknober-users", users),
    "qknober-loads": ("qknober-loads", knob_loads),
    "qknober-c3": ("qknober-window", windows),
}
