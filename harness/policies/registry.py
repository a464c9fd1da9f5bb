"""Creates policy objects from names and settings that users write, including users' own policies.

A name is one of `POLICIES`, an entry point of the group ``yarnfair.policies``, or ``path/to/file.py:Class``.
"""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError, YarnfairError, first_sentence, nearest
from harness.base.extensions import Registry
from harness.policies.base import Policy, parse_settings
from harness.policies.user_file import from_user_file

_LOG = logging.getLogger(__name__)

#: The policies of the core: name -> "module:class", in the order of lists.
_CORE: dict[str, str] = {
    "static": "harness.policies.static:Static",
    "fair": "harness.policies.fair:Fair",
    "capacity": "harness.policies.fair:Capacity",
    "drf": "harness.policies.drf:Drf",
    "fifo": "harness.policies.fifo:Fifo",
    "ltrf": "harness.policies.ltrf:Ltrf",
    "naive-hltrf": "harness.policies.naive_hltrf:NaiveHltrf",
    "hltrf": "harness.policies.hltrf:Hltrf",
    "decay-htcondor": "harness.policies.decay_htcondor:DecayHtcondor",
    "decay-slurm": "harness.policies.decay_slurm:DecaySlurm",
    "decay-kueue": "harness.policies.decay_kueue:DecayKueue",
    "decay-kai": "harness.policies.decay_kai:DecayKai",
}
#: All policies; those of extensions (`harness.base.extensions`) come last. A class is imported on demand.
POLICIES = Registry(_CORE, "policies")
ENTRY_POINT_GROUP = "yarnfair.policies"
#: Policies that a Python program defines, by name; known in this process only (the package `yarnfair`).
OBJECTS: dict[str, type[Policy]] = {}


def policy_names() -> list[str]:
    """Return the built-in policies and those of installed packages."""
    return [*POLICIES, *sorted(point.name for point in entry_points(group=ENTRY_POINT_GROUP))]


def policy_class(name: str) -> type[Policy]:
    """Return the policy class of a name. Raises CallError for an unknown name, InputError for an unusable file."""
    if name in POLICIES:
        module, attribute = POLICIES[name].split(":")
        found: type[Policy] = getattr(importlib.import_module(module), attribute)
        return found
    if name in OBJECTS:
        return OBJECTS[name]
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name:
            return _checked(point.load(), name)
    path, colon, attribute = name.rpartition(":")
    if colon and path.endswith(".py"):
        hint = "give --policy path/to/file.py:Class"
        return _checked(from_user_file(Path(path), attribute, what="class", hint=hint), f"{path}:{attribute}")
    shown = name if len(name) <= 60 else name[:57] + "..."
    close = nearest(name, policy_names())
    hint = f"did you mean {close!r}? " if close else ""
    hint += "`yarnfair list policies` names all; or give path/to/file.py:Class"
    raise CallError(f"no policy {shown!r}", where="--policy", hint=hint)


def stock_scheduler(name: str) -> str | None:
    """Return the scheduler of a stock policy; None for a policy that runs on any scheduler."""
    found: str | None = vars(policy_class(name)).get("stock_of")
    return found


def has_detail_figure(name: str) -> bool:
    """Return `Policy.detail_figure` of a policy's own class; False for an unknown policy."""
    try:
        return bool(vars(policy_class(name)).get("detail_figure"))
    except YarnfairError:
        return False


def installed_policy(name: str) -> str | None:
    """Return the module of a policy from an installed package; None for any other policy."""
    if name in POLICIES:
        return None
    return next((point.module for point in entry_points(group=ENTRY_POINT_GROUP) if point.name == name), None)


def about(name: str) -> str:
    """Return a policy's description: the first sentence of its class's docstring, without backquotes."""
    return first_sentence((policy_class(name).__doc__ or "").replace("``", ""))


def make_policy(name: str, settings: Mapping[str, Any] | None = None) -> Policy:
    """Create a policy with settings, given as text or numbers ({"t_wait": "inf", "discount": "0.5"}).

    Raises CallError (exit 2) for an unknown policy or setting or a bad value, each with the valid ones.
    """
    cls = policy_class(name)
    parsed, exact = parse_settings(cls, settings or {})
    _LOG.debug("policy %s of %s: %s", name, cls.__module__, parsed)
    return cls(parsed, exact)


def settings_of(name: str) -> list[str]:
    """Return the settings of a policy, alternative names last."""
    cls = policy_class(name)
    return [*getattr(cls.Settings, "__dataclass_fields__", {}), *cls.aliases]


def _checked(found: Any, where: str) -> type[Policy]:
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise InputError("is not a subclass of harness.policies.base.Policy", where=where)
    require_complete(found, where)
    if not found.name:
        found.name = found.__name__
    return found


def require_complete(found: type[Policy], where: str) -> None:
    """Raise InputError if a policy's class lacks a method that every policy must define, such as ``plan``."""
    if inspect.isabstract(found):
        missing = " and ".join(f"{name}()" for name in sorted(found.__abstractmethods__))
        raise InputError(
            f"policy {found.__name__} does not define {missing}",
            where=where,
            hint="plan(self, snapshot, ledger) returns a harness.model.plan.Plan; docs/how-to/write-a-policy.md",
        )
