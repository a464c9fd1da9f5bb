"""Random allocation files, many of them odd: what the ResourceManager loads, and some that it refuses."""

from __future__ import annotations

import random
import re

WEIGHTS = ["1", "1.0", "2", "3", "0.5", "0.1", "10", "1.7", " 4 ", "0.333333333333", "7e0", "1f", "2.5d", "0x1p1"]
WEIGHTS += ["+3", ".5", "5.", "0", "-1", "-0.0", "1e-3", "1e6", "1e-9", "1e-30", "1e-44", "1e-46", "1e9", "1e15"]
WEIGHTS += ["1e30", "3.5e38", "Infinity", "-Infinity", "16777217", "0.1000000014901161194"]
NAMES = ["a", "b", "c", "d", "prod", "dev", "q_1", "Ünïcode", "with space", "x-y", "A", "default", "ROOT"]
ODD_RESOURCES = [
    "memory-mb=3000",
    "vcores=5",
    "memory-mb=20%",
    "vcores=150%, memory-mb=10.5%",
    "memory-mb=5000,vcores=99999999999",
    "0 mb, 0 vcores",
    "100%",
    "0%",
    "33.3%",
    "12.5 % memory , 1.% cpu",
    "10% cpu, 70% memory",
    "3000.9 mb, 2.9 vcores",
    "7 vcores 4000 mb",
    "4000mb 7vcores",
    "2147483647 mb, 2147483647 vcores",
    "1000000%",
    " 1024 MB , 4 VCORES ",
    "memory-mb = 9223372036854775807 , vcores = 7",
]
BROKEN_RESOURCES = [
    "1024",
    "",
    "-1 mb, 3 vcores",
    "50",
    "a=b",
    "memory=10,vcores=3",
    "-5%",
    "50% memory",
    "1 gb, 2 vcores",
    "=",
]
BROKEN_NUMBERS = ["", "x", "1_000", "inf", "nan", "1,5", "0x10", "1e", "--1", "1 2"]


def _resource(rng: random.Random, broken: float) -> str:
    if rng.random() < broken:
        return rng.choice(BROKEN_RESOURCES)
    if rng.random() < 0.4:
        return rng.choice(ODD_RESOURCES)
    memory, vcores = rng.choice([0, 1, 500, 1024, 4096, 10000, 60000]), rng.choice([0, 1, 2, 7, 30])
    return rng.choice(
        [f"{memory} mb, {vcores} vcores", f"memory-mb={memory},vcores={vcores}", f"{rng.randint(0, 120)}%"]
    )


def _attributes(rng: random.Random, leaf: bool, broken: float, drf_ok: bool) -> list[str]:
    said: list[str] = []

    def say(tag: str, text: str, chance: float) -> None:
        if rng.random() < chance:
            said.append(f"<{tag}>{text}</{tag}>")

    number = lambda good: rng.choice(BROKEN_NUMBERS) if rng.random() < broken else good  # noqa: E731
    say("weight", number(rng.choice(WEIGHTS) if rng.random() < 0.5 else f"{rng.uniform(0.1, 9):.3f}"), 0.7)
    say("minResources", _resource(rng, broken), 0.3)
    say("maxResources", _resource(rng, broken), 0.3)
    say("maxChildResources", _resource(rng, broken), 0.1)
    say("maxContainerAllocation", _resource(rng, broken), 0.15)
    say("maxRunningApps", number(str(rng.choice([0, 1, 5, 50, -1, 2147483647]))), 0.2)
    say("minSharePreemptionTimeout", number(str(rng.choice([0, 5, 60, -1, 9223372036854775807]))), 0.15)
    say("fairSharePreemptionTimeout", number(str(rng.choice([0, 5, 60, 10**16]))), 0.15)
    say("fairSharePreemptionThreshold", number(rng.choice(["0.3", "0.55", "1", "7", "-2", "NaN", "0.1"])), 0.15)
    say("allowPreemptionFrom", rng.choice(["true", "false", "TRUE", "yes", "no"]), 0.15)
    say("schedulingPolicy", rng.choice(["fair", "drf", "DRF", "Fair", "fifo"] if drf_ok else ["fair", "fifo"]), 0.25)
    say("schedulingMode", "fair", 0.05)
    say("aclSubmitApps", rng.choice(["alice", "alice,bob  admins", " ", "*", " ops", "bob "]), 0.15)
    say("aclAdministerApps", rng.choice(["root", " wheel"]), 0.1)
    say("aclListReservations", "carol", 0.05)
    say("wieght", "9", 0.05)
    if leaf:
        say("maxAMShare", number(rng.choice(["0.1", "0.55", "2", "-1.0", "NaN", "0.33333334326744079590"])), 0.25)
        say("reservation", "", 0.03)
    elif rng.random() < broken:
        said.append("<maxAMShare>0.5</maxAMShare>")
    rng.shuffle(said)
    return said


def _queue(rng: random.Random, depth: int, broken: float, drf_ok: bool, name: str) -> str:
    children: list[str] = []
    if depth > 0 and rng.random() < 0.55:
        names = rng.sample(NAMES, rng.randint(1, 4))
        if rng.random() < 0.05:
            names.append(names[0])
        children = [_queue(rng, depth - 1, broken, drf_ok, child) for child in names]
    tag = rng.choice(["queue", "queue", "queue", "pool"])
    kind = ' type="parent"' if rng.random() < 0.05 else ""
    if rng.random() < broken:
        name = rng.choice(["a.b", "", " ", "root"])
    inside = _attributes(rng, not children and not kind, broken, drf_ok) + children
    rng.shuffle(inside)
    if rng.random() < 0.1:
        inside.insert(0, "<!-- a comment -->")
    return f'<{tag} name="{name}"{kind}>' + "\n".join(inside) + f"</{tag}>"


def random_file(rng: random.Random, *, broken: float = 0.0, depth: int = 3, nan: float = 0.0) -> str:
    """An allocation file of at most `depth` levels below the top queues.

    `broken` is the chance of each value to be one that Hadoop may refuse, `nan` that of a weight to be NaN.
    """
    drf_root = rng.random() < 0.5
    names = rng.sample(NAMES, rng.randint(1, 6))
    queues = [_queue(rng, depth, broken, drf_root, name) for name in names]
    if nan:
        queues = [
            re.sub(r"(?<=<weight>)[^<]*", lambda old: "NaN" if rng.random() < nan else old[0], queue)
            for queue in queues
        ]
    top: list[str] = []
    if rng.random() < 0.3:
        policy = "<schedulingPolicy>drf</schedulingPolicy>" if drf_root else ""
        attributes = [item for item in _attributes(rng, False, broken, drf_root) if "chedulingPolicy" not in item]
        root = rng.choice(["root", "root", "root", "root", "Root", " root"])
        top.append(f'<queue name="{root}">' + policy + "".join(attributes) + "".join(queues) + "</queue>")
    else:
        top += queues
        if drf_root:
            top.append("<defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>")

    def say(tag: str, text: str, chance: float = 0.15) -> None:
        if rng.random() < chance:
            top.append(f"<{tag}>{text}</{tag}>")

    say("queueMaxResourcesDefault", _resource(rng, broken))
    say("userMaxAppsDefault", str(rng.randint(0, 20)))
    say("queueMaxAppsDefault", rng.choice(["5", "0", "-3"]))
    say("queueMaxAMShareDefault", rng.choice(["0.2", "1.5", "-1.0", "0.7"]))
    say("defaultMinSharePreemptionTimeout", rng.choice(["7", "0"]))
    say("defaultFairSharePreemptionTimeout", rng.choice(["9", "11"]))
    say("fairSharePreemptionTimeout", "13")
    say("defaultFairSharePreemptionThreshold", rng.choice(["0.9", "3", "-1"]))
    if rng.random() < 0.2:
        top.append('<user name="alice"><maxRunningApps>3</maxRunningApps></user>')
    if rng.random() < 0.2:
        top.append(rng.choice(PLACEMENTS if rng.random() < broken * 5 else PLACEMENTS[:3]))
    if rng.random() < broken:
        top.append(
            rng.choice(["<defaultQueueSchedulingPolicy>fifo</defaultQueueSchedulingPolicy>", "<userMaxAppsDefault/>"])
        )
    say("unknownThing", "1")
    rng.shuffle(top)
    return '<?xml version="1.0"?>\n<allocations>\n' + "\n".join(top) + "\n</allocations>\n"


PLACEMENTS = [
    '<queuePlacementPolicy><rule name="specified"/><rule name="default" queue="x"/></queuePlacementPolicy>',
    '<queuePlacementPolicy><rule name="user" create="false"/><rule name="reject"/></queuePlacementPolicy>',
    '<queuePlacementPolicy><Rule name="nestedUserQueue"><rule name="primaryGroup"/></Rule></queuePlacementPolicy>',
    "<queuePlacementPolicy></queuePlacementPolicy>",
    "<queuePlacementPolicy> </queuePlacementPolicy>",
    '<queuePlacementPolicy><rule name="specified"/></queuePlacementPolicy>',
    '<queuePlacementPolicy><rule name="user"/><rule name="default"/></queuePlacementPolicy>',
    '<queuePlacementPolicy><rule name="nestedUserQueue"/></queuePlacementPolicy>',
    '<queuePlacementPolicy><rule name="nestedUserQueue"><rule name="user"/></rule></queuePlacementPolicy>',
    '<queuePlacementPolicy><rule name="default"><rule name="user"/></rule></queuePlacementPolicy>',
    '<queuePlacementPolicy><rule name="bogus"/></queuePlacementPolicy>',
    '<queuePlacementPolicy><rule name="User"/></queuePlacementPolicy>',
    '<queuePlacementPolicy><rule name="user"><rule name="reject"/></rule></queuePlacementPolicy>',
]
