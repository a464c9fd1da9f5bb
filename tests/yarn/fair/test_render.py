"""Queue trees to allocation files: what is written is read back; what would go wrong is refused with its place."""

from __future__ import annotations

import random

import pytest
import yaml

from harness.base.documents import parse_yaml
from harness.base.errors import InputError
from harness.model.queues import AllocationFile, QueueSettings, ResourceLimit
from harness.model.resources import Resource
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.render import render_allocations
from harness.yarn.fair.tree import read_tree
from harness.yarn.fair.validate import validate_allocations
from tests.yarn.fair.trees import random_tree


def read(text: str) -> AllocationFile:
    document = parse_yaml(text, "queues.yaml")
    return read_tree(document.data, document.where)


def test_a_small_tree() -> None:
    text = render_allocations(read("queues:\n  a: {weight: 3}\n  g: {children: {b: {}, c: {weight: 0.1}}}\n"))
    assert text == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<allocations>\n"
        '  <queue name="a">\n'
        "    <weight>3</weight>\n"
        "  </queue>\n"
        '  <queue name="g">\n'
        '    <queue name="b"/>\n'
        '    <queue name="c">\n'
        "      <weight>0.1</weight>\n"
        "    </queue>\n"
        "  </queue>\n"
        "</allocations>\n"
    )


def test_what_is_left_out_of_a_maximum_is_without_limit() -> None:
    file = parse_allocations(render_allocations(read("queues: {a: {max_resources: {memory_mb: 4096}}}")))
    assert file.max_resources("root.a") == ResourceLimit(Resource(4096, 2**31 - 1))


@pytest.mark.parametrize("seed", range(60))
def test_random_trees_come_back(seed: int) -> None:
    tree = random_tree(random.Random(seed))
    file = read(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False))
    text = render_allocations(file)
    assert parse_allocations(text) == file
    assert validate_allocations(text).errors == []


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        ("queues: {a: {wieght: 3}}", "queues.yaml:1: queue root.a", "write weight"),
        ("queues:\n a:\n  children:\n   b: {weight: -1}", "queues.yaml:4: queue root.a.b", "weight -1 is not between"),
        ("queues: {a: {weight: .nan}}", "queue root.a", "weight nan is not between"),
        ("queues: {a: {weight: .inf}}", "queue root.a", "weight inf is not between"),
        ("queues: {a: {weight: 0.0001}}", "queue root.a", "between 0.001 and 1e+06"),
        ("queues: {a: {weight: 2000000}}", "queue root.a", "scale the weights"),
        ("queues: {a: {weight: '3'}}", "queue root.a", "weight: "),
        ("queues: {a: {weight: 1" + "0" * 400 + "}}", "queue root.a", "between 0.001 and 1e+06"),
        ("queues: {a: {weight: 1e400}}", "queue root.a", "is not a number (it is '1e400')"),
        ("queues: {a: }", "queue root.a", "is not a mapping"),
        ("queues: {a: {weight: true}}", "queue root.a", "weight: "),
        ("queues: {a.b: {}}", "queues.yaml:1", "contains a dot"),
        ('queues: {"a\\tb": {}}', "queues.yaml:1", "white space"),
        ("queues: {'': {}}", "queues.yaml:1", "empty"),
        ("queues: {root: {}}", "queues.yaml:1", "reserved"),
        ("queues: {g: {children: {Root: {}}}}", "queue root.g", "reserved"),
        ("queues: {a: {}, a: {}}", "queues.yaml:1", "appears twice"),
        ("queues: {}", "queues.yaml:1", "no queues"),
        ("queues: []", "queues.yaml:1", "not a mapping"),
        ("[]", "queues.yaml:1", "not a mapping"),
        ("weights: {}", "queues.yaml", "queues: is missing"),
        ("queues: &x {a: {children: *x}}", "queues.yaml:1", "contains itself"),
        ("queues: {a: {min_resources: {memory_mb: 9}, max_resources: {memory_mb: 8}}}", "queue root.a", "greater than"),
        ("queues: {a: {max_resources: {memory_mb: 9, vcores_percent: 8}}}", "queue root.a", "mixes"),
        ("queues: {a: {max_resources: {}}}", "queue root.a", "says nothing"),
        ("queues: {a: {max_resources: {memory_gb: 9}}}", "queue root.a", "unknown key"),
        ("queues: {a: {max_am_share: 0.3, children: {b: {}}}}", "queue root.a", "a parent cannot have max_am_share"),
        ("queues: {a: {reservation: true, children: {b: {}}}}", "queue root.a", "a parent cannot have reservation"),
        ("queues: {a: {max_am_share: 1.5}}", "queue root.a", "not between 0 and 1"),
        ("queues: {a: {scheduling_policy: drf}}", "queues.yaml:1: queue root.a", "not allowed below root"),
        ("queues: {a: {scheduling_policy: fifo, children: {b: {}}}}", "queue root.a", "for leaves only"),
        ("queues: {a: {scheduling_policy: best}}", "queue root.a", "'best'"),
        ("queues: {a: {acl_submit_apps: ''}}", "queue root.a", "acl_submit_apps is empty"),
        ("queues: {a: {max_running_apps: 3000000000}}", "queue root.a", "max_running_apps"),
        ("{queues: {a: {}}, placement: []}", "queues.yaml:1", "no rules"),
        ("{queues: {a: {}}, placement: [{rule: usre}]}", "queues.yaml:1", "no placement rule"),
        ("{queues: {a: {}}, defaults: {scheduling_policy: fifo}}", "queues.yaml:1", "scheduling_policy"),
    ],
)
def test_what_is_refused(text: str, place: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        render_allocations(read(text))
    line = caught.value.line()
    assert place in line
    assert part in line
    assert "\n" not in line
    assert "; " in line


def test_placement_that_hadoop_refuses_is_refused() -> None:
    with pytest.raises(InputError, match="can never be reached"):
        render_allocations(read("{queues: {a: {}}, placement: [{rule: default}, {rule: reject}]}"))


def test_values_that_no_file_can_express() -> None:
    odd = AllocationFile(
        settings={"root.a": QueueSettings("root.a", min_share_preemption_timeout_ms=1500)},
        configured_leaves=("root.a",),
    )
    with pytest.raises(InputError, match="do not come back"):
        render_allocations(odd)
