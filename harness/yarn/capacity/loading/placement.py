"""Placement of applications: the rules by name, and the mappings to queues."""

from __future__ import annotations

from collections.abc import Callable

from harness.yarn.capacity import mapping
from harness.yarn.capacity.loading.reading import HADOOP, Node, Reading
from harness.yarn.fair.javanum import parse_int, trim

_PLACEMENT_RULES = "yarn.scheduler.queue-placement-rules"
_APP_NAMES = _PLACEMENT_RULES + ".app-name"


def queue_names(root: Node) -> mapping.QueueNames:
    """Return the queues in the form in which mappings name them."""
    kinds: dict[str, mapping.QueueKind] = {}
    for node in root.tree():
        kinds[node.path] = "parent" if node.kind == "plan" else node.kind
        if node.kind == "plan":
            kinds[f"{node.path}.{node.name}-default"] = "leaf"
    return mapping.QueueNames.of(kinds)


def check_placement(reading: Reading, root: Node) -> None:
    """Check the placement rules, and the mappings of users, applications and workflows to queues."""
    settings = reading.settings
    text = reading.text(_PLACEMENT_RULES)
    rules = [part for part in (text or "").split(",") if part]
    for rule in dict.fromkeys(rules):
        if rules.count(rule) > 1:
            reading.refuse("YF150", _PLACEMENT_RULES, None, f"placement rule {rule!r} appears twice", "name it once")
        elif rule not in ("user-group", "app-name") and ("." not in rule or rule.startswith(HADOOP)):
            reading.refuse(
                "YF150",
                _PLACEMENT_RULES,
                None,
                f"there is no placement rule {rule[:80]!r}",
                "write user-group or app-name",
            )
    if rules and not {"user-group", "app-name"} & set(rules):
        return
    names = queue_names(root)
    form = reading.text("mapping-rule-format")
    form = "legacy" if form is None else form
    if form not in ("legacy", "json"):
        reading.refuse(
            "YF151",
            "mapping-rule-format",
            None,
            f"mapping-rule-format {form[:40]!r} is none",
            "write legacy or json",
        )
        return

    def report(key: str) -> Callable[[mapping.Refused], None]:
        def note(refused: mapping.Refused) -> None:
            code = "YF152" if isinstance(refused, mapping.Syntax) else "YF153"
            reading.refuse(code, key, None, refused.what, refused.hint)

        return note

    if form == "legacy":
        for key, by_name in (("queue-mappings", False), (_APP_NAMES, True)):
            try:
                mappings = settings.collection(key)
            except ValueError:
                continue
            mapping.check_legacy(mappings, names, names=by_name, report=report(key))
    elif document := reading.text("mapping-rule-json"):
        mapping.check_json(document, names, report=report("mapping-rule-json"))
    _check_workflows(reading)


def _check_workflows(reading: Reading) -> None:
    try:
        workflows = reading.settings.collection("workflow-priority-mappings")
    except ValueError:
        return
    for one in workflows:
        parts = [trim(part) for part in one.split(":") if trim(part)]
        try:
            if len(parts) != 3:
                raise ValueError("it is not of the form workflow:queue:priority")
            parse_int(parts[2])
        except ValueError as error:
            reading.refuse(
                "YF154",
                "workflow-priority-mappings",
                None,
                f"workflow mapping {one[:80]!r}: {error}",
                "write workflow:root.queue:5",
            )
