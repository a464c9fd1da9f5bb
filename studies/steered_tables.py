"""The tables of docs/figures-assess.md on the Capacity Scheduler, from the record of studies.steered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from studies.steered_measure import BUSY
from studies.steered_measure import counted as tally
from studies.tables import Values, markdown


def answers(values: Values) -> str:
    """What `assess` answered, and what then ran."""
    rows = [
        (
            name,
            load["why"],
            load["expected"],
            load["verdict"],
            load["ran"] if load["recommended"] else f"nothing ({load['ran']} ran)",
            f"{100 * load['reproduction_error']:.1f} %",
        )
        for name, load in values["loads"].items()
    ]
    head = ("load", "what it is", "written down before", "answer", "recommended", "replay off the recording")
    return markdown(head, rows)


def queues(values: Values) -> str:
    """By load, run under the controller, and queue: the prediction, and what happened."""
    rows = [
        (
            name,
            run,
            queue.removeprefix("root."),
            ", ".join(f"{one:.1f}" for one in row["without_s"]),
            "" if row["predicted_s"] is None else f"{row['predicted_s']:.1f} {_band(row['band_s'])}",
            f"{row['steered_s']:.1f}{'' if row['in_band'] or row['band_s'] is None else ' (outside)'}",
            "" if row["replayed_change"] is None else f"{100 * row['replayed_change']:+.0f} %",
            f"{100 * row['change']:+.0f} %",
            row["predicted"],
            _happened(row),
        )
        for name, load in values["loads"].items()
        for run, found in load["steered"].items()
        for queue, row in found.items()
    ]
    head = ("load", "run", "queue", "without, s", "predicted, s (band)", "took, s", "predicted change", "change")
    return markdown((*head, "predicted", "happened"), rows)


def _band(band: Sequence[float]) -> str:
    return f"({band[0]:.1f} to {band[1]:.1f})"


def _happened(row: Mapping[str, Any]) -> str:
    if row["predicted"] == "unsure" or row["right"]:
        return str(row["happened"])
    return f"**{row['happened']}**" if row["opposite"] else f"{row['happened']} (differs)"


def losses(values: Values) -> str:
    """By load and run the sharing loss and the time below the dues, replayed, predicted and measured."""
    rows = []
    for name, load in values["loads"].items():
        predicted, replayed = load["loss_predicted_s"], load["loss_replayed_s"]
        without_s = sum(load["loss_s"][run] for run in load["without"]) / len(load["without"])
        for run, loss_s in load["loss_s"].items():
            under = run in load["steered"]
            expected = predicted if under else [replayed]
            rows.append(
                (
                    name,
                    run,
                    "" if expected is None else f"{expected[0]:.1f} {_band(expected[1:]) if under else ''}".strip(),
                    f"{loss_s:.1f}",
                    f"{100 * (predicted[0] / replayed - 1):+.0f} %" if under and predicted else "",
                    f"{100 * (loss_s / without_s - 1):+.0f} %" if under else "",
                    f"{load['settled'][run]['mean']:.1f} {_band(load['settled'][run]['band'])}",
                    f"{load['settled'][run]['real']:.1f}{'' if load['settled'][run]['in_band'] else ' (outside)'}",
                    f"{load['below_due_s'][run]:.0f}",
                    load["writes"].get(run, ""),
                )
            )
    head = ("load", "run", "simulated, s (band)", "loss, s", "predicted change", "change")
    late = ("once settled: simulated, s (band)", "loss, s")
    return markdown((*head, *late, "below the dues, s", "writes"), rows)


def counts(values: Values) -> str:
    """How many words and bands were right, by load and run."""
    rows = [
        (name, run, *_counts(tally(list(found.values()))))
        for name, load in values["loads"].items()
        for run, found in load["steered"].items()
    ]
    rows.append(("all", "but steered-busy", *_counts(values["with_priority"])))
    rows.append(("all", "", *_counts(values)))
    return markdown(("load", "run", "queues", "unsure", "words right", "opposite", "in the band"), rows)


def _counts(found: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        found["queues"],
        found["queues"] - found["words"],
        f"{found['words_right']} of {found['words']}",
        found["opposite"],
        f"{found['in_band']} of {found['bands']}",
    )


def machine(values: Values) -> str:
    """The load average of the machine during each run, and how fast it was."""
    rows = []
    for name, load in values["loads"].items():
        runs = {run: (found, load["pace"][run]) for run, found in load["machine"].items()}
        if (before := load["asked_before"]) is not None:
            runs["recorded, first"] = (before["machine"], before["pace"])
        rows += [
            (
                name,
                run,
                f"{found['mean']:.1f}",
                f"{found['most']:.1f}",
                f"{own['task_s']:.2f}",
                f"{own['start_s']:.2f}",
                f"{own['master_start_s']:.2f}",
                f"{own['first_wait_s']:.1f}",
            )
            for run, (found, own) in runs.items()
        ]
    head = ("load", "run", "load average, mean", "most", "a task works, s", "its container starts, s")
    return markdown((*head, "a master starts, s", "the first application waits, s"), rows)


def below(values: Values) -> str:
    """By load and queue the seconds below the due, simulated of the recorded run and measured."""
    rows = []
    for name, load in values["loads"].items():
        steered = list(load["steered"])
        for queue in load["below"]["recorded"]:
            own = {run: found[queue] for run, found in load["below"].items()}
            rows.append(
                (
                    name,
                    queue.removeprefix("root."),
                    _simulated(own["recorded"]),
                    ", ".join(_real(one) for run, one in own.items() if run not in steered),
                    _simulated(own[steered[0]]),
                    ", ".join(_real(own[run]) for run in steered),
                )
            )
    head = ("load", "queue", "without: simulated, s", "was, s", "under the controller: simulated, s")
    return markdown((*head, "was, s (each run)"), rows)


def _simulated(one: Mapping[str, Any]) -> str:
    return f"{one['mean']:.0f} ({one['band'][0]:.0f} to {one['band'][1]:.0f})"


def _real(one: Mapping[str, Any]) -> str:
    return f"{one['real']:.0f}{'' if one['in_band'] else ' (outside)'}"


def below_counts(values: Values) -> str:
    """How many times below the due lie in their bands, and how far all queues' times together are off."""
    rows = []
    for under, label in ((False, "without a controller"), (True, "under the controller")):
        for name, load in values["loads"].items():
            for run, found in load["below"].items():
                if (run in load["steered"]) == under:
                    told, was = (sum(one[key] for one in found.values()) for key in ("mean", "real"))
                    inside = sum(one["in_band"] for one in found.values())
                    rows.append((label, name, run, f"{inside} of {len(found)}", f"{told:.0f}", f"{was:.0f}"))
    return markdown(("", "load", "run", "in the band", "all queues: simulated, s", "was, s"), rows)


def by_itself(values: Values) -> str:
    """Each run under the controller, simulated by its own tasks: what it took, and the band."""
    rows = [
        (
            name,
            run,
            f"{sum(one['in_band'] for one in found['completion'].values())} of {len(found['completion'])}",
            ", ".join(
                f"{queue.rpartition('.')[2]} {one['real']:.1f} ({one['band'][0]:.1f} to {one['band'][1]:.1f})"
                for queue, one in found["completion"].items()
            ),
            f"{load['loss_s'][run]:.1f} {_band(found['loss']['band'])}",
        )
        for name, load in values["loads"].items()
        for run, found in load["own"].items()
    ]
    return markdown(("load", "run", "queues inside", "took (band), s", "sharing loss, s"), rows)


def asked_again(values: Values) -> str:
    """The answers on the recordings with the order of their queues, beside those that were given."""
    rows = []
    for name, load in values["loads"].items():
        if (again := load["asked_again"]) is None:
            continue
        first = tally([row for run, found in load["steered"].items() if run != BUSY for row in found.values()])
        for label, said, found in (("as given", load, first), ("with the order", again, again)):
            rows.append(
                (
                    name,
                    label,
                    said["verdict"],
                    said["recommended"] or "nothing",
                    f"{100 * said['reproduction_error']:.1f} %",
                    f"{found['words_right']} of {found['words']}",
                    found["opposite"],
                    f"{found['in_band']} of {found['bands']}",
                )
            )
    head = ("load", "recording", "answer", "recommended", "replay off the recording", "words right", "opposite")
    return markdown((*head, "in the band"), rows)


TABLES: dict[str, tuple[str, Callable[[Values], str]]] = {
    "steered-answers": ("steered", answers),
    "steered-queues": ("steered", queues),
    "steered-losses": ("steered", losses),
    "steered-counts": ("steered", counts),
    "steered-machine": ("steered", machine),
    "steered-below": ("steered", below),
    "steered-below-counts": ("steered", below_counts),
    "steered-by-itself": ("steered", by_itself),
    "steered-asked-again": ("steered", asked_again),
}
