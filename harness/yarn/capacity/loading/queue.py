"""Further settings of one queue: largest container, state, users, lifetimes, order, and priorities."""

from __future__ import annotations

from harness.base.errors import nearest
from harness.model.queues import ROOT
from harness.yarn.capacity.amounts import MEMORY, VCORES, parse_container
from harness.yarn.capacity.loading.reading import HADOOP, Node, Reading
from harness.yarn.capacity.loading.scheduler import check_lookup_policy
from harness.yarn.fair.javanum import float32, parse_float, parse_int, split, trim

LEAF_POLICIES = ("fifo", "fair", "fifo-with-partitions", "fifo-for-pending-apps")
PARENT_POLICIES = ("utilization", "priority-utilization")
_LEAF_POLICY_CLASSES = frozenset(
    HADOOP + "yarn.server.resourcemanager.scheduler.policy." + name
    for name in (
        "FifoOrderingPolicy",
        "FairOrderingPolicy",
        "FifoOrderingPolicyForPendingApps",
        "FifoOrderingPolicyWithExclusivePartitions",
    )
)
_PRIORITY_KEYS = ("user", "group", "max_priority", "default_priority")


def check_largest_container(reading: Reading, node: Node) -> None:
    """Check that the queue's largest container is not above the cluster's."""
    path = node.path
    key = f"{path}.maximum-allocation"
    text = reading.text(key)
    limits = {MEMORY: "yarn.scheduler.maximum-allocation-mb", VCORES: "yarn.scheduler.maximum-allocation-vcores"}
    cluster = {
        name: reading.number(limit, default) for (name, limit), default in zip(limits.items(), (8192, 4), strict=True)
    }
    found: dict[str, tuple[str, float]] = {}
    if text:
        try:
            found = {name: (key, amount) for name, amount in parse_container(text, reading.types).items()}
        except ValueError as error:
            reading.refuse(
                "YF118", key, path, f"maximum-allocation {text[:80]!r}: {error}", "write memory-mb=8192,vcores=4"
            )
            return
    else:
        for name, ending in ((MEMORY, "mb"), (VCORES, "vcores")):
            own = f"{key}-{ending}"
            amount = reading.number(own, -1, queue=path)
            if amount is not None and amount != -1:
                found[name] = (own, amount)
    for name, (own, amount) in found.items():
        most = cluster.get(name, float(2**63))
        if most is None:
            continue
        known = reading.site_known or reading.settings.raw(limits.get(name, "")) is not None
        if amount > most and known:
            reading.refuse(
                "YF119",
                own,
                path,
                f"its largest container, {amount:.0f} of {name}, is above the cluster's, {most:.0f}",
                f"lower it, or raise {limits.get(name, name)} in yarn-site.xml",
            )


def read_state(reading: Reading, node: Node) -> None:
    """Read whether the queue is stopped; a queue below a stopped one cannot run."""
    key = f"{node.path}.state"
    text = reading.text(key)
    above = node.parent is not None and node.parent.stopped
    if text is not None and text.upper() not in ("RUNNING", "STOPPED"):
        reading.refuse("YF130", key, node.path, f"state {text[:40]!r} is none", "write RUNNING or STOPPED")
        node.stopped = above
        return
    node.stopped = above if text is None else text.upper() == "STOPPED"
    if text is not None and above and not node.stopped and node.parent is not None:
        reading.refuse(
            "YF131",
            key,
            node.path,
            f"it is RUNNING below {node.parent.path}, which is STOPPED",
            f"write STOPPED here, or RUNNING as {node.parent.path}.state",
        )


def read_user_weights(reading: Reading, node: Node) -> None:
    """Read the weights of users, which children inherit. ``check_leaf`` checks their range."""
    if node.parent is not None:
        node.user_weights = dict(node.parent.user_weights)
    for key in reading.user_settings.get(node.path, ()):
        user = key[len(node.path) + len(".user-settings.") :].replace(".weight", "", 1)
        if not user:
            continue
        text = reading.text(key)
        try:
            node.user_weights[user] = parse_float(text or "") if text is not None else 1.0
        except ValueError as error:
            reading.refuse("YF101", key, node.path, f"weight of user {user[:40]}: {error}", "write a number")


def check_node_sorting(reading: Reading, node: Node) -> None:
    """Check that the class of the queue's node-sorting policy is configured."""
    key = reading.present(f"{node.path}.multi-node-sorting.policy", "multi-node-sorting.policy")
    name = reading.text(key)
    if name:
        check_lookup_policy(reading, trim(name), key, node.path if key.startswith(ROOT) else None)


def read_lifetimes(reading: Reading, node: Node) -> None:
    """Read the maximum and the default lifetime of applications; both are inherited."""
    path, parent = node.path, node.parent
    most_key, default_key = f"{path}.maximum-application-lifetime", f"{path}.default-application-lifetime"
    most, default = reading.number(most_key, -1, "long", path), reading.number(default_key, -1, "long", path)
    if most is None or default is None:
        return
    node.max_lifetime = int(most)
    node.default_lifetime = int(default)
    if parent is None:
        node.default_lifetime_set = default >= 0
        return
    node.max_lifetime = int(most) if most >= 0 else parent.max_lifetime
    node.default_lifetime_set = default >= 0 or parent.default_lifetime_set
    if default < 0:
        node.default_lifetime = (
            min(parent.default_lifetime, node.max_lifetime) if node.default_lifetime_set else node.max_lifetime
        )
    if node.max_lifetime > 0 and node.default_lifetime > node.max_lifetime:
        reading.refuse(
            "YF132",
            reading.present(default_key, most_key),
            path,
            f"its default lifetime {node.default_lifetime} s exceeds its maximum {node.max_lifetime} s",
            "lower default-application-lifetime, or raise maximum-application-lifetime",
        )
    if node.default_lifetime <= 0:
        node.default_lifetime = node.max_lifetime


def check_user_limits(reading: Reading, node: Node) -> float | None:
    """Check the limits of a user, and return ``minimum-user-limit-percent``; None if it cannot be read."""
    path = node.path
    reading.number("user-limit-factor", 1.0, "float")
    reading.number(f"{path}.user-limit-factor", 1.0, "float", path)
    usual = reading.number("minimum-user-limit-percent", 100.0, "float")
    return reading.number(f"{path}.minimum-user-limit-percent", 100.0 if usual is None else usual, "float", path)


def check_leaf(reading: Reading, node: Node) -> None:
    """Check settings that only leaf queues have."""
    path = node.path
    _check_leaf_policy(reading, node)
    limit = check_user_limits(reading, node)
    reading.number(f"{path}.maximum-am-resource-percent", 0.1, "float", path)
    for key in ("maximum-applications", "global-queue-max-application"):
        reading.number(key, -1)
    for key in ("node-locality-delay", "rack-locality-additional-delay"):
        reading.number(key, -1)
    reading.number(f"{path}.maximum-applications", -1, queue=path)
    reading.number(f"{path}.default-application-priority", 0, queue=path)
    _check_priority_acl(reading, node)
    if limit is None:
        return
    limit = min(100.0, limit)
    most = float32(100.0 / limit) if limit else float("inf")
    for user, weight in node.user_weights.items():
        key = _weight_key(reading, node, user)
        told = any((found.code, found.key) == ("YF133", key) for found in reading.refusals)
        if (weight < 0 or weight > most) and not told:
            reading.refuse(
                "YF133",
                key,
                path,
                f"weight {weight:g} of user {user[:40]} is not within 0 and {most:g} (100 / "
                f"minimum-user-limit-percent {limit:g})",
                "lower the weight, or minimum-user-limit-percent",
            )


def _weight_key(reading: Reading, node: Node, user: str) -> str:
    at: Node | None = node
    while at is not None:
        for key in reading.user_settings.get(at.path, ()):
            if key[len(at.path) + len(".user-settings.") :].replace(".weight", "", 1) == user:
                return key
        at = at.parent
    return f"{node.path}.user-settings.{user}.weight"


def _check_leaf_policy(reading: Reading, node: Node) -> None:
    key = f"{node.path}.ordering-policy"
    text = reading.text(key)
    if text is None or trim(text) in LEAF_POLICIES or text in _LEAF_POLICY_CLASSES:
        return
    if "." in text and not trim(text).startswith(HADOOP) and text == trim(text):
        return
    close = trim(text) if trim(text) in _LEAF_POLICY_CLASSES else nearest(trim(text).lower(), LEAF_POLICIES)
    reading.refuse(
        "YF134",
        key,
        node.path,
        f"ordering-policy {text[:100]!r} is none here: a leaf orders applications",
        f"write {close}" if close else "write fifo or fair",
    )


def read_parent_policy(reading: Reading, node: Node) -> None:
    """Read the policy by which a queue orders its children, which inherit it."""
    key = f"{node.path}.ordering-policy"
    text = reading.text(key)
    inherited = "utilization" if node.parent is None else node.parent.ordering
    name = inherited if text is None else trim(text)
    node.ordering = name
    if text is None or name in PARENT_POLICIES or ("." in name and not name.startswith(HADOOP)):
        return
    node.ordering = inherited
    kind = "a reservable queue" if node.kind == "plan" else "a queue with children"
    close = nearest(name.lower(), PARENT_POLICIES) or "utilization"
    reading.refuse(
        "YF134",
        key,
        node.path,
        f"ordering-policy {name[:100]!r} is none here: {kind} orders queues",
        f"write {close}",
    )


def _check_priority_acl(reading: Reading, node: Node) -> None:
    key = f"{node.path}.acl_application_max_priority"
    text = reading.text(key)
    reading.number("yarn.cluster.max-application-priority", 0)
    for group in _bracketed(text or ""):
        if not trim(group):
            continue
        try:
            _check_priority_group(group)
        except ValueError as error:
            reading.refuse(
                "YF135",
                key,
                node.path,
                f"acl_application_max_priority {text!r:.90}: {error}",
                "write [user=alice group=g1 max_priority=10 default_priority=3]",
            )


def _bracketed(text: str) -> list[str]:
    """Return the text after each opening bracket, up to the closing one or the end."""
    found, at = [], 0
    while (start := text.find("[", at)) >= 0:
        end = text.find("]", start + 1)
        # Hadoop's expression requires at least one character between the brackets.
        if end == start + 1:
            at = start + 1
            continue
        found.append(text[start + 1 : end if end >= 0 else len(text)])
        at = end if end >= 0 else len(text)
    return [group for group in found if group]


def _check_priority_group(group: str) -> None:
    """Raise ValueError for a text on which ``AppPriorityACLConfigurationParser`` throws."""
    named, most = False, False
    for pair in trim(group).split(" "):
        pieces = split(pair, "=")
        if not pair or len(pieces) < 2:
            continue
        key = trim(pieces[0]).lower()
        if key not in _PRIORITY_KEYS:
            raise ValueError(f"there is no {pieces[0]!r}")
        if key in ("max_priority", "default_priority"):
            parse_int(pieces[1])
            most |= key == "max_priority"
        else:
            named = True
    if not most:
        raise ValueError("it has no max_priority")
    if not named:
        raise ValueError("it names no user and no group")
