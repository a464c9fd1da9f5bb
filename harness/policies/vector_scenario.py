"""Scenarios of several resources: reading their YAML. The format: docs/reference/scenario.md."""

from __future__ import annotations

from fractions import Fraction

import yaml

from harness.policies.scenario import Reader, shown
from harness.policies.vectors import VectorScenario, VectorUser

Fields = dict[str, tuple[yaml.Node, yaml.Node]]
#: What an answer says of a queue beside its resources.
TAKEN = ("tasks", "dominant_share")


def is_vectors(top: Fields) -> bool:
    """Whether the fields make a scenario of several resources: its capacity is a mapping, and nothing arrives."""
    return "capacity" in top and isinstance(top["capacity"][1], yaml.MappingNode) and "arrivals" not in top


def read_vectors(reader: Reader, top: Fields) -> VectorScenario:
    """The scenario from its fields. InputError for whatever is wrong with it."""
    for name, (key, _) in top.items():
        if name not in ("capacity", "queues", "description"):
            raise reader.fail(
                key, f"unknown field {shown(name)}", "a scenario of several resources has capacity, queues, description"
            )
    if "queues" not in top:
        raise reader.fail(None, "has no queues", "give every queue its task (docs/reference/scenario.md)")
    capacity = {}
    for name, (key, value) in reader.mapping(top["capacity"][1], "capacity").items():
        if not name or name in TAKEN:
            raise reader.fail(key, f"{shown(name)} is no resource name", "the answer uses it: call it something else")
        capacity[name] = reader.number(value, f"the capacity of {shown(name)}")
        if capacity[name] <= 0:
            raise reader.fail(value, f"the capacity of {shown(name)} is {shown(value.value)}", "capacities are above 0")
    if not capacity:
        raise reader.fail(
            top["capacity"][1], "capacity names no resource", "for example {vcores: 200, memory_gb: 1000}"
        )
    users = []
    for name, (key, body) in reader.mapping(top["queues"][1], "queues").items():
        if not name or "." in name:
            raise reader.fail(key, f"{shown(name)} is no queue name", "a name is not empty and has no dot")
        users.append(_user(reader, name, key, body, list(capacity)))
    if not users:
        raise reader.fail(top["queues"][1], "no queues", "name at least one")
    users.sort(key=lambda user: user.name.encode())
    return VectorScenario(tuple(capacity), tuple(capacity.values()), tuple(users))


def _user(reader: Reader, name: str, key: yaml.Node, body: yaml.Node, resources: list[str]) -> VectorUser:
    fields = reader.mapping(body, f"queue {shown(name)}")
    for field, (field_key, _) in fields.items():
        if field not in ("weight", "task", "tasks"):
            raise reader.fail(
                field_key,
                f"unknown field {shown(field)} of queue {shown(name)}",
                "with several resources a queue has weight, task and tasks",
            )
    if "task" not in fields:
        raise reader.fail(key, f"queue {shown(name)} has no task", f"give task: {{{resources[0]}: 1, ...}}")
    weight = Fraction(1)
    if "weight" in fields:
        weight_node = fields["weight"][1]
        weight = reader.number(weight_node, f"the weight of {shown(name)}")
        if weight <= 0:
            raise reader.fail(
                weight_node, f"the weight of {shown(name)} is {shown(weight_node.value)}", "weights are above 0"
            )
    demand = dict.fromkeys(resources, Fraction(0))
    for resource, (resource_key, value) in reader.mapping(fields["task"][1], f"task of {shown(name)}").items():
        if resource not in demand:
            raise reader.fail(
                resource_key, f"the task of {shown(name)} asks for {shown(resource)}, which capacity does not name"
            )
        demand[resource] = reader.number(value, f"{resource} of the task of {shown(name)}")
        if demand[resource] < 0:
            raise reader.fail(value, f"{shown(resource)} of the task of {shown(name)} is below 0")
    if not any(demand.values()):
        raise reader.fail(fields["task"][1], f"the task of {shown(name)} needs nothing", "give one resource above 0")
    tasks = None
    if "tasks" in fields:
        tasks = reader.whole(fields["tasks"][1], f"tasks of {shown(name)}", least=0)
    return VectorUser(name, weight, tuple(demand.values()), tasks)
