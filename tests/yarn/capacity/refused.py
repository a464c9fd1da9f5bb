"""Every way in which a configuration keeps Hadoop's Capacity Scheduler from starting or refreshing, a file each.

Each row changes one of the good trees below: what the test calls it, the tree, the changes, the code of the finding.
tests/oracle/test_capacity_loading.py shows that Hadoop refuses all of these, and takes the good trees and `FINE`.
"""

from __future__ import annotations

import json

_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler."
WEIGHTS = {"root.queues": "a,b", "root.a.capacity": "1w", "root.b.capacity": "3w"}
PERCENT = {"root.queues": "a,b", "root.a.capacity": "60", "root.b.capacity": "40"}
DEEP = {**PERCENT, "root.a.queues": "x,y", "root.a.x.capacity": "50", "root.a.y.capacity": "50"}
ABSOLUTE = {
    "root.queues": "a,b",
    "root.a.capacity": "[memory=8192,vcores=8]",
    "root.b.capacity": "[memory=4096,vcores=4]",
    "root.a.queues": "x",
    "root.a.x.capacity": "[memory=8192,vcores=8]",
}
#: Hadoop adds up the kinds of capacities child by child: x before y is no mixture, y before x is one. The order is the
#: file's at the start, and a hash table's at a refresh, in which "root.default.y" comes first.
ORDERED = {
    "root.queues": "default,a",
    "root.default.capacity": "[memory=8192,vcores=8]",
    "root.a.capacity": "[memory=8192,vcores=8]",
    "root.a.queues": "x,y",
    "root.a.x.capacity": "60",
    "root.a.y.capacity": "[memory=4096,vcores=4]",
}
LABELS = {
    **PERCENT,
    "root.a.accessible-node-labels": "gpu",
    "root.a.accessible-node-labels.gpu.capacity": "100",
    "root.b.accessible-node-labels": "gpu",
    "root.b.accessible-node-labels.gpu.capacity": "0",
}
MANAGED = {**PERCENT, "root.a.auto-create-child-queue.enabled": "true", "root.a.leaf-queue-template.capacity": "50"}
FLEXIBLE = {**WEIGHTS, "root.a.auto-queue-creation-v2.enabled": "true"}
TREES = {
    "weights": WEIGHTS,
    "percent": PERCENT,
    "deep": DEEP,
    "absolute": ABSOLUTE,
    "labels": LABELS,
    "managed": MANAGED,
    "flexible": FLEXIBLE,
}


def rules(*made: dict[str, object]) -> dict[str, str]:
    """Mapping rules in JSON; what a rule lacks is filled in."""
    usual = {"type": "user", "matches": "*", "policy": "user", "fallbackResult": "skip"}
    return {
        "mapping-rule-format": "json",
        "mapping-rule-json": json.dumps({"rules": [{**usual, **one} for one in made]}),
    }


REFUSED: list[tuple[str, dict[str, str], dict[str, str | None], str]] = [
    # numbers: CapacitySchedulerConfiguration's getters
    ("a limit that is no number", WEIGHTS, {"root.a.maximum-applications": "many"}, "YF101"),
    ("a number with a separator", WEIGHTS, {"maximum-applications": "10,000"}, "YF101"),
    ("an integer with a fraction", WEIGHTS, {"root.a.priority": "1.5"}, "YF101"),
    ("a fraction with a comma", WEIGHTS, {"maximum-am-resource-percent": "0,1"}, "YF101"),
    ("a part with a per cent sign", WEIGHTS, {"root.a.maximum-am-resource-percent": "10%"}, "YF101"),
    ("a factor that is no number", WEIGHTS, {"root.a.user-limit-factor": "none"}, "YF101"),
    ("a share that is no number", WEIGHTS, {"minimum-user-limit-percent": "half"}, "YF101"),
    ("a parallel limit with white space", WEIGHTS, {"root.a.max-parallel-apps": " 5"}, "YF101"),
    ("a lifetime with a unit", WEIGHTS, {"root.a.maximum-application-lifetime": "1h"}, "YF101"),
    ("a default priority that is none", WEIGHTS, {"root.a.default-application-priority": "high"}, "YF101"),
    ("a delay that is no number", WEIGHTS, {"node-locality-delay": "off"}, "YF101"),
    ("assignments that are no number", WEIGHTS, {"per-node-heartbeat.maximum-container-assignments": "all"}, "YF101"),
    ("a largest container with a unit", WEIGHTS, {"root.a.maximum-allocation-mb": "4g"}, "YF101"),
    ("a depth that is no number", WEIGHTS, {"auto-queue-creation-v2.maximum-queue-depth": "two"}, "YF101"),
    ("a user's weight that is no number", WEIGHTS, {"root.a.user-settings.alice.weight": "x"}, "YF101"),
    (
        "threads that are no number",
        WEIGHTS,
        {"schedule-asynchronously.enable": "true", "schedule-asynchronously.maximum-threads": "x"},
        "YF101",
    ),
    # classes
    (
        "a calculator that is misspelt",
        WEIGHTS,
        {"resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculater"},
        "YF103",
    ),
    (
        "a class that is no calculator",
        WEIGHTS,
        {"resource-calculator": "org.apache.hadoop.yarn.util.resource.Resources"},
        "YF103",
    ),
    ("a calculator without its package", WEIGHTS, {"resource-calculator": "DominantResourceCalculator"}, "YF103"),
    (
        "a management policy that is none",
        MANAGED,
        {"root.a.auto-create-child-queue.management-policy": _SCHEDULER + "capacity.queuemanagement.None"},
        "YF103",
    ),
    ("a sorting policy without a class", WEIGHTS, {"multi-node-sorting.policy": "other"}, "YF105"),
    ("an ordering policy of parents at a leaf", WEIGHTS, {"root.a.ordering-policy": "utilization"}, "YF134"),
    ("an ordering policy of leaves at a parent", WEIGHTS, {"root.ordering-policy": "fair"}, "YF134"),
    (
        "an ordering policy that is misspelt",
        WEIGHTS,
        {"root.a.ordering-policy": _SCHEDULER + "policy.FairOrderPolicy"},
        "YF134",
    ),
    # the tree
    ("no queues", WEIGHTS, {"root.queues": None}, "YF110"),
    ("an empty list of queues", WEIGHTS, {"root.queues": ","}, "YF110"),
    ("a reservable parent", DEEP, {"root.a.reservable": "true"}, "YF111"),
    ("children of a queue that makes them", MANAGED, {"root.a.queues": "x", "root.a.x.capacity": "100"}, "YF160"),
    # capacities
    ("a capacity that is none", WEIGHTS, {"root.a.capacity": "1x"}, "YF113"),
    ("a capacity with a per cent sign", PERCENT, {"root.a.capacity": "60%"}, "YF113"),
    ("a weight with white space behind it", WEIGHTS, {"root.a.capacity": "1w "}, "YF113"),
    ("a weight without a number", WEIGHTS, {"root.a.capacity": "w"}, "YF113"),
    ("brackets that are not closed", ABSOLUTE, {"root.b.capacity": "[memory=4096,vcores=4"}, "YF113"),
    ("white space within an amount", ABSOLUTE, {"root.b.capacity": "[memory=4096 ,vcores=4]"}, "YF113"),
    (
        "memory under a wrong name",
        PERCENT,
        {"root.a.capacity": "[mem=8,vcores=8]", "root.b.capacity": "[mem=4]"},
        "YF113",
    ),
    ("a percentage above 100", PERCENT, {"root.a.capacity": "150"}, "YF114"),
    ("a negative percentage", PERCENT, {"root.a.capacity": "-5"}, "YF114"),
    ("a label's maximum above 100", LABELS, {"root.a.accessible-node-labels.gpu.maximum-capacity": "200"}, "YF114"),
    ("a weight above 10000", WEIGHTS, {"root.a.capacity": "20000w"}, "YF115"),
    ("a negative weight", WEIGHTS, {"root.a.capacity": "-2w"}, "YF115"),
    ("a maximum that is a weight", WEIGHTS, {"root.a.maximum-capacity": "2w"}, "YF116"),
    ("a maximum that is a word", WEIGHTS, {"root.a.maximum-capacity": "all"}, "YF116"),
    ("a capacity above its maximum", ABSOLUTE, {"root.b.maximum-capacity": "[memory=1024,vcores=1]"}, "YF117"),
    (
        "a maximum above the parent's",
        ABSOLUTE,
        {
            "root.a.maximum-capacity": "[memory=8192,vcores=8]",
            "root.a.x.maximum-capacity": "[memory=16384,vcores=16]",
        },
        "YF117",
    ),
    ("a mixture of kinds", WEIGHTS, {"root.a.capacity": "50"}, "YF140"),
    (
        "a mixture that only a refresh sees",
        ORDERED,
        {"root.default.queues": "x,y", "root.default.x.capacity": "60", "root.default.y.capacity": "[memory=4096]"},
        "YF140",
    ),
    ("weights and absolute resources", WEIGHTS, {"root.a.capacity": "[memory=4096,vcores=4]"}, "YF140"),
    ("absolute below per cent", DEEP, {"root.a.queues": "x", "root.a.x.capacity": "[memory=10,vcores=1]"}, "YF141"),
    ("per cent below absolute", ABSOLUTE, {"root.a.x.capacity": "100"}, "YF141"),
    ("an absolute queue that makes queues", ABSOLUTE, {"root.b.auto-queue-creation-v2.enabled": "true"}, "YF141"),
    ("children above their parent", ABSOLUTE, {"root.a.x.capacity": "[memory=16384,vcores=8]"}, "YF142"),
    ("a sum of 90", PERCENT, {"root.a.capacity": "50"}, "YF143"),
    ("a sum of 110", DEEP, {"root.a.x.capacity": "60"}, "YF143"),
    ("a sum of 0", DEEP, {"root.a.x.capacity": "0", "root.a.y.capacity": "0"}, "YF143"),
    ("children of a queue without capacity", DEEP, {"root.a.capacity": "0", "root.b.capacity": "100"}, "YF143"),
    ("a child that is named twice", PERCENT, {"root.queues": "a,b,b"}, "YF143"),
    (
        "a template in absolute resources",
        MANAGED,
        {"root.a.leaf-queue-template.capacity": "[memory=10,vcores=1]"},
        "YF136",
    ),
    ("a template's capacity above 100", MANAGED, {"root.a.leaf-queue-template.capacity": "120"}, "YF114"),
    (
        "a template's label that its queue has not",
        {**MANAGED, "root.a.accessible-node-labels": "cpu"},
        {"root.a.leaf-queue-template.accessible-node-labels.gpu.capacity": "0"},
        "YF137",
    ),
    (
        "an unknown resource of a parent in flexible mode",
        DEEP,
        {"legacy-queue-mode.enabled": "false", "root.a.capacity": "[memory=4096,vcores=4,mem=2]"},
        "YF146",
    ),
    (
        "a maximum of weights in flexible mode",
        PERCENT,
        {"legacy-queue-mode.enabled": "false", "root.a.maximum-capacity": "[memory=50%,vcores=1w]"},
        "YF147",
    ),
    (
        "a label's maximum that is a weight in flexible mode",
        LABELS,
        {"legacy-queue-mode.enabled": "false", "root.a.accessible-node-labels.gpu.maximum-capacity": "2w"},
        "YF147",
    ),
    # labels
    ("a label's sum of 70", LABELS, {"root.a.accessible-node-labels.gpu.capacity": "70"}, "YF144"),
    (
        "a label with a maximum, and no capacity",
        PERCENT,
        {"root.a.accessible-node-labels.gpu.maximum-capacity": "50"},
        "YF144",
    ),
    (
        "a label with a part for masters alone",
        PERCENT,
        {"root.a.accessible-node-labels.gpu.maximum-am-resource-percent": "0.5"},
        "YF144",
    ),
    ("a label's property without a setting", PERCENT, {"root.a.accessible-node-labels.gpu": "100"}, "YF120"),
    ("labels of no queue", PERCENT, {"accessible-node-labels.gpu.capacity": "100"}, "YF120"),
    (
        "a label that the parent has not",
        DEEP,
        {"root.a.accessible-node-labels": "cpu", "root.a.x.accessible-node-labels": "gpu"},
        "YF121",
    ),
    (
        "all labels below some",
        DEEP,
        {"root.a.accessible-node-labels": "cpu", "root.a.x.accessible-node-labels": "*"},
        "YF121",
    ),
    (
        "a default label that is not accessible",
        PERCENT,
        {"root.a.accessible-node-labels": "cpu", "root.a.default-node-label-expression": "gpu"},
        "YF122",
    ),
    (
        "a default label of two",
        PERCENT,
        {"root.a.accessible-node-labels": "cpu", "root.a.default-node-label-expression": "cpu && gpu"},
        "YF122",
    ),
    (
        "an absolute queue with a label in per cent",
        ABSOLUTE,
        {"root.b.accessible-node-labels.gpu.capacity": "100"},
        "YF112",
    ),
    (
        "an absolute label that the parent has not",
        ABSOLUTE,
        {"root.a.x.accessible-node-labels.gpu.capacity": "[memory=8192,vcores=8]"},
        "YF145",
    ),
    # states, lifetimes, users, access
    ("a state that is none", WEIGHTS, {"root.a.state": "HALTED"}, "YF130"),
    ("a state that only Hadoop sets", WEIGHTS, {"root.a.state": "DRAINING"}, "YF130"),
    ("a state with white space", WEIGHTS, {"root.a.state": " RUNNING"}, "YF130"),
    ("running below stopped", DEEP, {"root.a.state": "STOPPED", "root.a.x.state": "RUNNING"}, "YF131"),
    (
        "a default lifetime above the maximum",
        WEIGHTS,
        {"root.a.maximum-application-lifetime": "100", "root.a.default-application-lifetime": "500"},
        "YF132",
    ),
    (
        "a default lifetime above the parent's maximum",
        DEEP,
        {"root.a.maximum-application-lifetime": "100", "root.a.x.default-application-lifetime": "500"},
        "YF132",
    ),
    ("a user's weight above 1", WEIGHTS, {"root.a.user-settings.alice.weight": "2"}, "YF133"),
    (
        "a user's weight above what the limit allows",
        WEIGHTS,
        {"root.a.user-settings.alice.weight": "5", "root.a.minimum-user-limit-percent": "25"},
        "YF133",
    ),
    ("a user's weight from above", DEEP, {"root.a.user-settings.alice.weight": "3"}, "YF133"),
    ("a negative weight of a user", WEIGHTS, {"root.a.user-settings.alice.weight": "-1"}, "YF133"),
    ("priorities without a user", WEIGHTS, {"root.a.acl_application_max_priority": "[max_priority=10]"}, "YF135"),
    ("priorities without a priority", WEIGHTS, {"root.a.acl_application_max_priority": "[user=alice]"}, "YF135"),
    (
        "priorities with another key",
        WEIGHTS,
        {"root.a.acl_application_max_priority": "[users=a max_priority=1]"},
        "YF135",
    ),
    ("a largest container of unknown resources", WEIGHTS, {"root.a.maximum-allocation": "cpu=3"}, "YF118"),
    ("a largest container without names", WEIGHTS, {"root.a.maximum-allocation": "4096"}, "YF118"),
    # mappings
    ("a mapping to no queue", PERCENT, {"queue-mappings": "u:alice:nosuch"}, "YF153"),
    ("a mapping to a parent", DEEP, {"queue-mappings": "u:alice:root.a"}, "YF153"),
    ("a mapping below a missing parent", PERCENT, {"queue-mappings": "u:%user:root.users.%user"}, "YF153"),
    ("a mapping below a leaf", PERCENT, {"queue-mappings": "u:%user:root.a.%user"}, "YF153"),
    ("a mapping to a child of a leaf", PERCENT, {"queue-mappings": "u:alice:root.a.x"}, "YF153"),
    (
        "a mapping to a name of two queues",
        {**DEEP, "root.b.queues": "x", "root.b.x.capacity": "100"},
        {"queue-mappings": "u:alice:x"},
        "YF153",
    ),
    ("a mapping with two dots", PERCENT, {"queue-mappings": "u:alice:root..a"}, "YF153"),
    ("a mapping without a kind", PERCENT, {"queue-mappings": "alice:a"}, "YF152"),
    ("a mapping with an equals sign", PERCENT, {"queue-mappings": "alice=a"}, "YF152"),
    ("a mapping of an unknown kind", PERCENT, {"queue-mappings": "user:alice:a"}, "YF152"),
    ("a second mapping that is wrong", PERCENT, {"queue-mappings": "u:alice:a, g:admins"}, "YF152"),
    (
        "an application's mapping to no queue",
        PERCENT,
        {"yarn.scheduler.queue-placement-rules.app-name": "etl:nosuch"},
        "YF153",
    ),
    ("an unknown format", PERCENT, {"mapping-rule-format": "JSON"}, "YF151"),
    ("rules that are no JSON", PERCENT, {"mapping-rule-format": "json", "mapping-rule-json": '{"rules":['}, "YF152"),
    ("rules that are a list", PERCENT, {"mapping-rule-format": "json", "mapping-rule-json": "[]"}, "YF152"),
    ("a rule of an unknown policy", PERCENT, rules({"policy": "users"}), "YF152"),
    ("a rule of an unknown type", PERCENT, rules({"type": "users"}), "YF152"),
    ("a rule without matches", PERCENT, rules({"matches": None}), "YF152"),
    ("a rule for all groups", PERCENT, rules({"type": "group"}), "YF152"),
    ("a rule of an unknown fallback", PERCENT, rules({"fallbackResult": "default"}), "YF152"),
    ("a custom rule without a place", PERCENT, rules({"policy": "custom"}), "YF152"),
    ("a default without a queue", PERCENT, rules({"policy": "setDefaultQueue"}), "YF152"),
    ("a custom rule for no queue", PERCENT, rules({"policy": "custom", "customPlacement": "root.nosuch"}), "YF153"),
    ("a rule below a leaf", PERCENT, rules({"parentQueue": "root.a"}), "YF153"),
    ("a rule below no queue", PERCENT, rules({"policy": "primaryGroup", "parentQueue": "users"}), "YF153"),
    ("a workflow without a priority", PERCENT, {"workflow-priority-mappings": "w:root.a"}, "YF154"),
    ("a placement rule twice", PERCENT, {"yarn.scheduler.queue-placement-rules": "user-group,user-group"}, "YF150"),
    ("an unknown placement rule", PERCENT, {"yarn.scheduler.queue-placement-rules": "user-groups"}, "YF150"),
]
#: Files that look odd, and that Hadoop takes.
FINE: list[tuple[str, dict[str, str], dict[str, str | None]]] = [
    ("maximum -1", PERCENT, {"root.a.maximum-capacity": "-1"}),
    (
        "priorities as documented",
        PERCENT,
        {"root.a.acl_application_max_priority": "[user=alice group=g1 max_priority=10 default_priority=3]"},
    ),
    ("kinds mixed in flexible mode", WEIGHTS, {"legacy-queue-mode.enabled": "false", "root.b.capacity": "40"}),
    (
        "a vector in flexible mode",
        WEIGHTS,
        {"legacy-queue-mode.enabled": "false", "root.b.capacity": "[memory=50%,vcores=2w]"},
    ),
    ("a sum of 120 in flexible mode", PERCENT, {"legacy-queue-mode.enabled": "false", "root.b.capacity": "60"}),
    (
        "templates with wildcards",
        FLEXIBLE,
        {
            "root.*.auto-queue-creation-v2.template.capacity": "2w",
            "root.a.*.auto-queue-creation-v2.leaf-template.user-limit-factor": "5",
        },
    ),
    (
        "preemption's settings",
        PERCENT,
        {"yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "0.3"},
    ),
    ("units", ABSOLUTE, {"root.b.capacity": "[memory=4Gi,vcores=4]"}),
    ("a hexadecimal limit", PERCENT, {"maximum-applications": "0x100"}),
    ("labels", LABELS, {}),
    (
        "a user's weight within its bounds",
        PERCENT,
        {"root.a.user-settings.alice.weight": "4", "root.a.minimum-user-limit-percent": "25"},
    ),
    ("a mapping below a queue that makes queues", FLEXIBLE, {"queue-mappings": "u:%user:root.a.%user"}),
    ("a mapping to a queue that would be made", FLEXIBLE, {"queue-mappings": "u:alice:root.a.alice"}),
    ("a mapping below a managed queue", MANAGED, {"queue-mappings": "u:%user:root.a.%user"}),
    ("a mapping by a short name", DEEP, {"queue-mappings": "u:alice:x"}),
    (
        "rules",
        DEEP,
        rules({"parentQueue": "root.a"}, {"policy": "setDefaultQueue", "value": "root.b"}, {"policy": "defaultQueue"}),
    ),
    ("a mixture in the order that hides it", ORDERED, {}),
    ("stopped below stopped", DEEP, {"root.a.state": "STOPPED", "root.a.x.state": "STOPPED"}),
    ("stopped without a word below", DEEP, {"root.a.state": "stopped"}),
    (
        "a queue without capacity and without children's",
        DEEP,
        {"root.a.capacity": "0", "root.b.capacity": "100", "root.a.x.capacity": "0", "root.a.y.capacity": "0"},
    ),
    (
        "a sum of 0 that is allowed",
        DEEP,
        {"root.a.x.capacity": "0", "root.a.y.capacity": "0", "root.a.allow-zero-capacity-sum": "true"},
    ),
    ("a lifetime without a maximum", PERCENT, {"root.a.default-application-lifetime": "500"}),
    ("a reservable leaf", PERCENT, {"root.a.reservable": "true"}),
]


def changed(tree: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    """A tree with changes; None removes a property."""
    return {key: text for key, text in {**tree, **changes}.items() if text is not None}


def configuration(settings: dict[str, str]) -> bytes:
    """The file with these properties, one a line."""
    from xml.sax.saxutils import escape

    from harness.yarn.capacity.properties import PREFIX

    lines = [
        f"<property><name>{escape(key if key.startswith('yarn.') else PREFIX + key)}</name>"
        f"<value>{escape(text)}</value></property>"
        for key, text in settings.items()
    ]
    return ("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n").encode()
