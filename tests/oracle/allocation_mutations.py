"""Changes of an allocation file as people make them by mistake: what a differential test feeds besides random files."""

from __future__ import annotations

import random
import re

from tests.oracle.allocation_files import BROKEN_NUMBERS, BROKEN_RESOURCES, ODD_RESOURCES, PLACEMENTS, WEIGHTS

_ELEMENT = re.compile(r"<([A-Za-z-]+)>([^<>]*)</\1>")
_TAGS = [
    "weight",
    "minResources",
    "maxResources",
    "maxRunningApps",
    "maxAMShare",
    "schedulingPolicy",
    "aclSubmitApps",
    "fairSharePreemptionTimeout",
    "fairSharePreemptionThreshold",
    "defaultQueueSchedulingPolicy",
    "queueMaxAppsDefault",
    "userMaxAppsDefault",
    "maxContainerAllocation",
    "allowPreemptionFrom",
    "queuePlacementPolicy",
    "user",
    "queue",
    "poolMaxJobsDefault",
    "minMaps",
    "reservation",
    "property",
]
_RULES = [
    '<rule name="specified"/>',
    '<rule name="specified" create="false"/>',
    '<rule name="user"/>',
    '<rule name="reject"/>',
    '<rule name="default"/>',
    '<rule name="default" create="false"/>',
    '<rule name="default" queue="root.a"/>',
    '<rule name="primaryGroup"/>',
    '<rule name="primaryGroup" create="false"/>',
    '<rule name="secondaryGroup"/>',
    '<rule name="secondaryGroupExistingQueue"/>',
    '<rule name="nestedUserQueue"/>',
    "<rule/>",
    '<rule name=""/>',
    '<rule name="nestedUserQueue"><rule name="primaryGroup" create="false"/></rule>',
    '<rule name="nestedUserQueue" create="false"><rule name="default" queue="users"/></rule>',
    '<rule name="user"><rule name="primaryGroup"/><rule name="default"/></rule>',
    '<rule name="nestedUserQueue"><rule name="user"/></rule>',
    '<rule name="user"><rule name="nestedUserQueue"/></rule>',
]


def mutated(rng: random.Random, xml: str) -> str:
    """The file with one to three changes."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        xml = rng.choice([_value, _value, _tag, _name, _remove, _insert, _insert, _placement, _structure])(rng, xml)
    return xml


def _value(rng: random.Random, xml: str) -> str:
    found = list(_ELEMENT.finditer(xml))
    if not found:
        return xml
    one = rng.choice(found)
    text = rng.choice(
        [*BROKEN_NUMBERS, *BROKEN_RESOURCES, *ODD_RESOURCES, *WEIGHTS, "true", "fair", "drf", "fifo", " ", "FIFO"]
    )
    text = rng.choice([text, text, one[2] + rng.choice([" ", "x", "\n", "<!-- c -->", "<b/>", "%"])])
    return xml[: one.start(2)] + text + xml[one.end(2) :]


def _tag(rng: random.Random, xml: str) -> str:
    found = list(_ELEMENT.finditer(xml))
    if not found:
        return xml
    one = rng.choice(found)
    tag = rng.choice([rng.choice(_TAGS), one[1].lower(), one[1][:-1] or "x", one[1] + "s"])
    return f"{xml[: one.start()]}<{tag}>{one[2]}</{tag}>{xml[one.end() :]}"


def _name(rng: random.Random, xml: str) -> str:
    names = list(re.finditer(r' name="([^"]*)"', xml))
    if not names:
        return xml
    one = rng.choice(names)
    name = rng.choice(["a", "b", "a.b", "", " ", "root", "Root", "default", "x y", one[1] + " ", "root.a"])
    return rng.choice(
        [f'{xml[: one.start()]} name="{name}"{xml[one.end() :]}'] * 3
        + [xml[: one.start()] + xml[one.end() :], f'{xml[: one.start()]} nmae="{name}"{xml[one.end() :]}']
        + [f'{xml[: one.end()]} type="{rng.choice(["parent", "leaf", ""])}"{xml[one.end() :]}']
    )


def _remove(rng: random.Random, xml: str) -> str:
    found = list(_ELEMENT.finditer(xml))
    if not found:
        return xml
    one = rng.choice(found)
    return xml[: one.start()] + xml[one.end() :]


def _insert(rng: random.Random, xml: str) -> str:
    places = [one.end() for one in re.finditer(r"<(?:queue|pool|allocations)[^>/]*>", xml)]
    tag = rng.choice(_TAGS)
    text = rng.choice(["5", "0.5", "fair", "4096 mb, 4 vcores", "", "true", *WEIGHTS[:4], *BROKEN_NUMBERS[:3]])
    made = rng.choice([f"<{tag}>{text}</{tag}>"] * 4 + [f"<{tag}/>", '<queue name="z"/>', "text"])
    at = rng.choice(places)
    return xml[:at] + made + xml[at:]


def _placement(rng: random.Random, xml: str) -> str:
    rules = "".join(rng.choice(_RULES) for _ in range(rng.randint(1, 3)))
    made = rng.choice([f"<queuePlacementPolicy>{rules}</queuePlacementPolicy>"] * 4 + PLACEMENTS)
    return xml.replace("</allocations>", f"{made}</allocations>")


def _structure(rng: random.Random, xml: str) -> str:
    return rng.choice(
        [
            xml.replace("<allocations>", "<allocation>").replace("</allocations>", "</allocation>"),
            xml.replace("</allocations>", ""),
            xml.replace('<?xml version="1.0"?>', '<?xml version="1.0"?><!DOCTYPE allocations>'),
            xml.replace("<allocations>", '<allocations><queue name="root"/>'),
            xml.replace("<queue ", "<pool ").replace("</queue>", "</pool>"),
            xml.replace("</queue>", "", 1),
        ]
    )
