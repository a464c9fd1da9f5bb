"""Random capacity-scheduler.xml files as people write them, and mutations of them: what a differential test feeds.

A file begins as one of several shapes (percentages, weights, absolute resources, labels, queues made by applications,
mappings, flexible mode); then some of its properties are removed, renamed, given odd values, or added.
"""

from __future__ import annotations

import json
import random
from xml.sax.saxutils import escape

PREFIX = "yarn.scheduler.capacity."
_SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler."

INTEGERS = [
    "0",
    "1",
    "-1",
    "5",
    "100",
    "10000",
    " 7 ",
    "0x10",
    "-5",
    "2147483648",
    "1.5",
    "many",
    "",
    "1_000",
    "+3",
    "10,000",
]
REALS = [
    "0",
    "1",
    "0.1",
    "-1",
    "1.5",
    "100",
    "50%",
    "NaN",
    "1e3",
    ".5",
    "5.",
    "half",
    "",
    " 0.2 ",
    "Infinity",
    "1f",
    "1,5",
]
FLAGS = ["true", "false", "TRUE", "yes", "1", "", " true "]
CAPACITIES = [
    "0",
    "50",
    "100",
    "33.3",
    "150",
    "-5",
    "1w",
    "0w",
    "2.5w",
    "10000w",
    "10001w",
    "-1w",
    "-2w",
    "w",
    "ww",
    "1ww",
    " 1w",
    "1w ",
    "50%",
    "[memory=4096,vcores=4]",
    "[memory=0,vcores=0]",
    "[mem=4096,vcores=4]",
    "[memory=4Gi,vcores=4]",
    "[memory=4096 ,vcores=4]",
    "[memory-mb=4096,vcores=2]",
    "[memory=50%,vcores=2w]",
    "[memory=4096]",
    "[vcores=4]",
    "[memory=abc,vcores=1]",
    "[]",
    "[memory=,vcores=1]",
    "[memory=4096;vcores=4]",
    "[memory=4096,vcores=4",
    " 50 ",
    "NaN",
    "[memory=1.5,vcores=1]",
    "[memory=4096,vcores=4,yarn.io/gpu=2]",
    "",
    "fifty",
    "[memory=99999999Ti,vcores=1]",
    "[memory=50w,vcores=50w]",
    "[memory=4096mb,vcores=4]",
    "[memory=1e3,vcores=1]",
    "1.2.3",
    ".",
    "[memory = 4096, vcores = 4]",
]
MAXIMA = [
    "100",
    "50",
    "-1",
    "0",
    "200",
    "-5",
    "2w",
    "[memory=8192,vcores=8]",
    "[memory=1024,vcores=1]",
    "",
    "all",
    "100%",
    "NaN",
    "[memory=100%,vcores=50%]",
    "[mem=8192]",
    "[memory=2w,vcores=1w]",
]
STATES = ["RUNNING", "STOPPED", "running", "stopped", "DRAINING", " RUNNING", "RUNNING ", "HALTED", ""]
LABELS = ["*", "gpu", "cpu", "gpu,cpu", " ", "", "gpu , cpu", "*,gpu"]
EXPRESSIONS = ["gpu", "cpu", "", "gpu && cpu", "*"]
LEAF_POLICIES = [
    "fifo",
    "fair",
    "fifo ",
    "fifo-with-partitions",
    "fifo-for-pending-apps",
    "utilization",
    "drf",
    "",
    _SCHEDULER + "policy.FairOrderingPolicy",
    " " + _SCHEDULER + "policy.FairOrderingPolicy",
    _SCHEDULER + "policy.FifoOrderingPolicyForPendingApps",
    _SCHEDULER + "policy.AbstractComparatorOrderingPolicy",
    "priority-utilization",
    " utilization",
    _SCHEDULER + "capacity.policy.PriorityUtilizationQueueOrderingPolicy",
]
PRIORITY_ACLS = [
    "*",
    "[user=alice group=g1 max_priority=10 default_priority=3]",
    "[user=alice]",
    "[max_priority=5]",
    "[]",
    "[user=a max_priority=x]",
    "[user=a max_priority=5][group=g max_priority=2]",
    "[users=a max_priority=2]",
    "[ ]",
    "[USER=a MAX_PRIORITY=2]",
    "[user=a,max_priority=2]",
    "[user= max_priority=2]",
    "[group=g max_priority=3 default_priority=]",
    "[user=a  max_priority=4 x]",
    "[user=a max_priority=4",
    " ",
]
ALLOCATIONS = [
    "memory-mb=4096,vcores=2",
    "memory=4G,vcores=2",
    "memory-mb=999999,vcores=1",
    "memory-mb=4096",
    "vcores=99",
    "4096",
    "memory-mb=4096 M,vcores=1",
    "gpu=1",
    "memory-mb=4k",
    "",
    "memory=-1",
    "memory-mb=1,memory-mb=2",
    "cpu=3",
    "memory-mb = 5",
]
CALCULATORS = [
    "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
    "org.apache.hadoop.yarn.util.resource.DominantResourceCalculater",
    " org.apache.hadoop.yarn.util.resource.DominantResourceCalculator\n",
    "DominantResourceCalculator",
    "org.apache.hadoop.yarn.util.resource.Resources",
    "",
]
LOOKUP = _SCHEDULER + "placement.ResourceUsageMultiNodeLookupPolicy"
#: A queue's setting -> values that people write, and odd ones.
QUEUE: dict[str, list[str]] = {
    "capacity": CAPACITIES,
    "maximum-capacity": MAXIMA,
    "state": STATES,
    "ordering-policy": LEAF_POLICIES,
    "user-limit-factor": REALS,
    "minimum-user-limit-percent": REALS,
    "maximum-am-resource-percent": REALS,
    "maximum-applications": INTEGERS,
    "max-parallel-apps": INTEGERS,
    "priority": INTEGERS,
    "default-application-priority": INTEGERS,
    "maximum-allocation-mb": INTEGERS,
    "maximum-allocation-vcores": INTEGERS,
    "maximum-allocation": ALLOCATIONS,
    "maximum-application-lifetime": INTEGERS,
    "default-application-lifetime": INTEGERS,
    "accessible-node-labels": LABELS,
    "default-node-label-expression": EXPRESSIONS,
    "accessible-node-labels.gpu.capacity": CAPACITIES,
    "accessible-node-labels.gpu.maximum-capacity": MAXIMA,
    "accessible-node-labels.gpu.maximum-am-resource-percent": REALS,
    "accessible-node-labels.gpu": ["50"],
    "acl_submit_applications": ["*", " ", "alice,bob g1", "alice, bob"],
    "acl_application_max_priority": PRIORITY_ACLS,
    "user-settings.alice.weight": REALS,
    "reservable": FLAGS,
    "disable_preemption": FLAGS,
    "allow-zero-capacity-sum": FLAGS,
    "auto-create-child-queue.enabled": FLAGS,
    "auto-create-child-queue.management-policy": [
        _SCHEDULER + "capacity.queuemanagement.GuaranteedOrZeroCapacityOverTimePolicy",
        _SCHEDULER + "capacity.queuemanagement.NoSuchPolicy",
        "",
    ],
    "auto-create-child-queue.max-queues": INTEGERS,
    "leaf-queue-template.capacity": CAPACITIES,
    "leaf-queue-template.maximum-capacity": MAXIMA,
    "leaf-queue-template.ordering-policy": LEAF_POLICIES,
    "leaf-queue-template.accessible-node-labels.gpu.capacity": CAPACITIES,
    "auto-queue-creation-v2.enabled": FLAGS,
    "auto-queue-creation-v2.maximum-queue-depth": INTEGERS,
    "auto-queue-creation-v2.template.capacity": ["1w", "2w", "50"],
    "multi-node-sorting.policy": ["default", "other", ""],
    "queues": ["x,y", "x", "", "x, y", "x,,y", "x,x", "a.b", " "],
    "wieght": ["2"],
}
#: The scheduler's own settings.
WHOLE: dict[str, list[str]] = {
    "maximum-applications": INTEGERS,
    "maximum-am-resource-percent": REALS,
    "minimum-user-limit-percent": REALS,
    "user-limit-factor": REALS,
    "global-queue-max-application": INTEGERS,
    "max-parallel-apps": INTEGERS,
    "node-locality-delay": INTEGERS,
    "rack-locality-additional-delay": INTEGERS,
    "resource-calculator": CALCULATORS,
    "per-node-heartbeat.maximum-container-assignments": INTEGERS,
    "per-node-heartbeat.maximum-offswitch-assignments": INTEGERS,
    "auto-queue-creation-v2.maximum-queue-depth": INTEGERS,
    "legacy-queue-mode.enabled": FLAGS,
    "mapping-rule-format": ["json", "legacy", "JSON", "xml", ""],
    "multi-node-sorting.policy": ["default", "other", ""],
    "multi-node-sorting.policy.default.class": [LOOKUP, _SCHEDULER + "placement.NoSuch"],
    "queue-mappings-override.enable": FLAGS,
    "schedule-asynchronously.enable": ["false"],
    "workflow-priority-mappings": ["w:root.a:5", "w:root.a", "w:root.a:x", "", "w:root.a:1,v:root.b:2"],
}
PLACES = [
    "a",
    "b",
    "root.a",
    "root.b",
    "root",
    "root.a.x",
    "x",
    "nosuch",
    "root.nosuch",
    "%user",
    "root.%user",
    "a.%user",
    "root.users.%user",
    "root.a.%primary_group.%user",
    "%primary_group",
    "root..a",
    "root.a.",
    ".",
    "%specified",
    "root.a.new",
    "root.a.new.newer",
    "root.a-default",
    "A",
    "%default",
    "root.%user.x",
    "root.a.%user.x",
]


POLICIES = [
    "user",
    "custom",
    "specified",
    "defaultQueue",
    "primaryGroup",
    "primaryGroupUser",
    "secondaryGroup",
    "secondaryGroupUser",
    "applicationName",
    "setDefaultQueue",
    "reject",
]
GOOD_PLACES = ["a", "root.a", "%user", "%primary_group", "root.%user", "%specified"]


class Random(random.Random):
    """A generator with what the shapes below need."""

    def chance(self, part: float) -> bool:
        """True in this part of the cases."""
        return self.random() < part


def mappings(rng: Random) -> str:
    """Legacy mappings, some of them wrong."""
    made = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(["u", "g"] * 10 + ["x", ""])
        who = rng.choice(["alice", "%user", "admins"] * 6 + ["alice ", ""])
        place = rng.choice(PLACES if rng.chance(0.4) else GOOD_PLACES)
        made.append(rng.choice([f"{kind}:{who}:{place}"] * 30 + [f"{who}={place}", f"{kind}:{who}"]))
    return rng.choice([",", ", ", ",\n"]).join(made)


def rules(rng: Random) -> str:
    """The text of a mapping-rule-json, sometimes broken."""
    made = []
    for _ in range(rng.randint(1, 3)):
        rule: dict[str, object] = {
            "type": rng.choice(["user", "user", "group", "application"]),
            "matches": rng.choice(["*", "alice", "admins"]),
            "policy": rng.choice(POLICIES),
            "fallbackResult": rng.choice(["skip", "reject", "placeDefault"]),
        }
        if rng.chance(0.5):
            rule["parentQueue"] = rng.choice(PLACES if rng.chance(0.3) else GOOD_PLACES)
        if rule["policy"] == "custom" or rng.chance(0.1):
            rule["customPlacement"] = rng.choice(PLACES if rng.chance(0.3) else GOOD_PLACES)
        if rule["policy"] == "setDefaultQueue" or rng.chance(0.1):
            rule["value"] = rng.choice(PLACES)
        if rng.chance(0.3):
            rule["create"] = rng.choice([True, False, "true", "no", 1, None])
        if rng.chance(0.12):
            key = rng.choice(list(rule))
            odd = rng.choice([None, "", "nosuch", 5, True, ["a"], {"a": 1}])
            if rng.chance(0.4):
                del rule[key]
            else:
                rule[key] = odd
        made.append(rule)
    text = json.dumps({"rules": made})
    if rng.chance(0.12):
        text = rng.choice(
            [text[: rng.randrange(len(text))], "[" + text + "]", text + " x", "{}", "null", text.replace('"', "'")]
        )
    return text


def shape(rng: Random) -> dict[str, str]:
    """A file without mistakes, or with those that its parts make together."""
    kind = rng.choice(["percent"] * 4 + ["weight"] * 3 + ["absolute"] * 2 + ["mixed"])
    made: dict[str, str] = {}

    def grow(path: str, names: list[str], depth: int, kind: str) -> None:
        made[f"{path}.queues"] = ",".join(names)
        parts = {1: ["100"], 2: ["60", "40"], 3: ["50", "25", "25"]}[len(names)]
        for name, part in zip(names, parts, strict=True):
            child = f"{path}.{name}"
            amount = 8192 // (2**depth * len(names)) if depth else 8192
            made[f"{child}.capacity"] = {
                "percent": part,
                "weight": f"{rng.choice(['1', '2', '0.5'])}w",
                "absolute": f"[memory={amount},vcores={max(1, amount // 1024)}]",
                "mixed": rng.choice([part, "1w"]),
            }[kind]
            if depth < 1 and rng.chance(0.4):
                grow(
                    child,
                    rng.choice([["x"], ["x", "y"]]),
                    depth + 1,
                    kind if rng.chance(0.85) else rng.choice(["percent", "weight"]),
                )

    grow("root", rng.choice([["a"], ["a", "b"], ["a", "b", "c"], ["default", "a"]]), 0, kind)
    leaves = [key.removesuffix(".capacity") for key in made if key.endswith(".capacity")]
    leaves = [path for path in leaves if f"{path}.queues" not in made]
    if rng.chance(0.15):
        made["legacy-queue-mode.enabled"] = "false"
    if rng.chance(0.3):
        for path in leaves:
            made[f"{path}.maximum-capacity"] = "100" if kind != "absolute" else "[memory=16384,vcores=16]"
    if rng.chance(0.25):
        made["root.accessible-node-labels"] = "*"
        made["root.accessible-node-labels.gpu.capacity"] = "100"
        top = [f"root.{name}" for name in made["root.queues"].split(",")]
        for index, path in enumerate(top):
            made[f"{path}.accessible-node-labels"] = "gpu"
            made[f"{path}.accessible-node-labels.gpu.capacity"] = "100" if index == 0 else "0"
    if rng.chance(0.2):
        path = rng.choice(leaves)
        if rng.chance(0.5):
            made[f"{path}.auto-create-child-queue.enabled"] = "true"
            made[f"{path}.leaf-queue-template.capacity"] = "50"
        else:
            made[f"{path}.auto-queue-creation-v2.enabled"] = "true"
    if rng.chance(0.3):
        made["queue-mappings"] = mappings(rng)
    elif rng.chance(0.3):
        made["mapping-rule-format"] = "json"
        made["mapping-rule-json"] = rules(rng)
    return made


def mutated(rng: Random, made: dict[str, str]) -> dict[str, str]:
    """The file with up to three changes."""
    made = dict(made)
    paths = sorted(
        {key.removesuffix(".capacity") for key in made if key.endswith(".capacity")} | {"root", "root.nosuch"}
    )
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        draw = rng.random()
        if draw < 0.15 and made:
            del made[rng.choice(sorted(made))]
        elif draw < 0.25 and made:
            key = rng.choice(sorted(made))
            made[rng.choice([key.replace("root.", "", 1), key.upper(), key + "s", key.replace(".", "-", 1)])] = (
                made.pop(key)
            )
        elif draw < 0.45 and made:
            key = rng.choice(sorted(made))
            name = next((name for name in sorted(QUEUE, key=len, reverse=True) if key.endswith("." + name)), None)
            made[key] = rng.choice(QUEUE[name]) if name else made[key] + rng.choice(["x", " ", ""])
        elif draw < 0.8:
            name = rng.choice(sorted(QUEUE))
            made[f"{rng.choice(paths)}.{name}"] = rng.choice(QUEUE[name])
        else:
            name = rng.choice(sorted(WHOLE))
            made[name] = rng.choice(WHOLE[name])
    return made


def document(made: dict[str, str], rng: Random) -> bytes:
    """The file's text, its properties in any order."""
    names = list(made)
    rng.shuffle(names)
    lines = [
        f"  <property><name>{escape(PREFIX + name)}</name><value>{escape(made[name])}</value></property>"
        for name in names
    ]
    return ("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n").encode()


def random_file(seed: int) -> bytes:
    """One file of a differential test."""
    rng = Random(seed)
    return document(mutated(rng, shape(rng)), rng)
