"""The controller's configuration file (YAML): the cluster it serves, the policy it enforces, where its ledger is.

Parsing is strict, as for all files that users write: an unknown key is an error with its line.
docs/reference/enforce.md explains the keys, yarn-policy/enforce.yaml is an example. The methods of `EnforceConfig` turn
the keys into objects.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from harness.base.documents import Name, Strict, read_yaml, validated
from harness.base.errors import CallError, InputError
from harness.control.capacity_actuator import CapacityActuator
from harness.control.clocks import TrustedClock
from harness.control.file_actuator import FileActuator
from harness.control.guards import Guards, Seconds
from harness.control.interfaces import Actuator, Document
from harness.control.settings import HALF_LIFE_S, MAX_RATIO, ControlSettings, Mode, OnStop, check_counting
from harness.model.plan import WEIGHT_MAX, WEIGHT_MIN, ResourceName
from harness.model.queues import ensure_root_prefix
from harness.policies import Policy, make_policy
from harness.policies.registry import policy_class
from harness.yarn.capacity.source import FileSource, open_source
from harness.yarn.discover import another_file, file_of_each, find_rm
from harness.yarn.errors import Unreachable
from harness.yarn.files import ConfigStore
from harness.yarn.http import HttpOptions, base_url
from harness.yarn.queue_answers import FAIR
from harness.yarn.rmclient import RmAddress, RmClient
from harness.yarn.rpc import RpcAddress
from harness.yarn.stores import open_store

Entitlement = Annotated[float, Field(ge=WEIGHT_MIN, le=WEIGHT_MAX, allow_inf_nan=False)]
Scalar = str | int | float | bool | None


class RmSpec(Strict):
    """One ResourceManager: its REST address, and its RPC ports if its configuration does not show them."""

    rest: Name
    """Its REST address. Of an RM that `--rm` names, the ports of its entry here are used."""
    admin: Name | None = None
    """Its admin RPC, `HOST:PORT`, where the RM does not tell it, or tells another than leads to it from here (a
    tunnel)."""
    client: Name | None = None
    """Its client RPC, likewise."""


class KerberosSpec(Strict):
    """Kerberos credentials: a principal and its keytab."""

    principal: Name
    """Whose tickets."""
    keytab: Name
    """Its keytab."""


class HttpSpec(Strict):
    """Connection settings of REST, RPC and WebHDFS."""

    user: Name | None = None
    """The user name of simple authentication."""
    auth: Literal["simple", "spnego"] = "simple"
    """`simple` or `spnego`. `spnego` without `http.kerberos` uses the tickets of the process (kinit)."""
    kerberos: KerberosSpec | None = None
    """Kerberos for REST, RPC and WebHDFS."""
    ca_file: Name | None = None
    """Who signed the certificates (PEM)."""
    cert_file: Name | None = None
    """The controller's own certificate."""
    key_file: Name | None = None
    """Its key."""
    connect_timeout_s: Seconds = 3.0
    """How long a connection may take."""
    read_timeout_s: Seconds = 20.0
    """How long an answer may take."""

    @model_validator(mode="after")
    def _kerberos_is_spnego(self) -> HttpSpec:
        if self.kerberos is not None and self.auth == "simple" and "auth" in self.model_fields_set:
            raise ValueError("kerberos with auth: simple: take one of them out")
        return self

    def options(self, deadline_s: float) -> HttpOptions:
        """Return the options of a client whose requests end within `deadline_s` seconds."""
        tickets = {"auth": "spnego", **self.kerberos.model_dump()} if self.kerberos else {}
        return HttpOptions(deadline_s=deadline_s, attempts=2, **{**self.model_dump(exclude={"kerberos"}), **tickets})


class MetricsSpec(Strict):
    """The Prometheus page."""

    port: int = Field(ge=0, le=65_535)
    """Its port."""
    address: Name = "127.0.0.1"
    """The address that it listens on."""


#: Keys that a running controller cannot take: it is made with them.
_FIXED = (
    "allocation_file",
    "capacity_file",
    "actuator",
    "actuator_settings",
    "ledger",
    "rms",
    "lease_s",
    "http",
    "metrics",
    "page",
)


class EnforceConfig(Strict):
    """The whole file. Relative paths are relative to the working directory."""

    keys_page: ClassVar[str] = "docs/reference/enforce.md"

    policy: Name
    """A policy's name, or `path/to/file.py:Class` ([policies](policies.md))."""
    settings: dict[str, Scalar] = Field(default_factory=dict)
    """The policy's settings. Without `resource`, `ltrf` and its relatives accumulate what the scheduler counts by:
    memory, or dominant shares under the DominantResourceCalculator and where all Fair queues are `drf`."""
    allocation_file: Name | None = None
    """Where the allocation file is: a path, `sftp://[user@]host[:port]/path`, `webhdfs://` or
    `swebhdfs://host:port/path`."""
    capacity_file: Name | None = None
    """Where the Capacity Scheduler's capacity-scheduler.xml is, in the same forms. Neither key: the RM's own store,
    over REST ([how](../how-to/capacity-scheduler.md))."""
    actuator: Name | None = None
    """The system whose shares are steered, where it is no ResourceManager: a name that an installed package adds
    ([contributing](../contributing.md)). Its queues' weights are what `mode` and `max_ratio` are of."""
    actuator_settings: dict[str, Scalar] = Field(default_factory=dict)
    """The settings of that system, as its package documents them."""
    ledger: Name
    """The ledger's file, on a local disk. Made when it is not there."""
    rms: list[RmSpec] = Field(default_factory=list, max_length=16)
    """ResourceManagers, when `--rm` does not name them."""
    queues: dict[Name, Entitlement] = Field(default_factory=dict)
    """Entitlements: queue (with or without `root.`) to a number within [0.001, 1,000,000]. Other queues have their
    weight in the file when first seen. A queue that nobody knows is an error, unless `accept` names
    `unknown-queues`."""
    period_s: Seconds = 5.0
    """The control period."""
    refresh: Literal["rpc", "poll"] = "rpc"
    """`rpc`: the admin RPC's `refreshQueues`. `poll`: the RM's own poll, every 10 s, of a file that has been still
    for 5 s. Writes are then at least 16 s apart (30 s with a period of 15 s), nothing is written over what is not
    in force yet, and after 25 s that is `not-in-force`."""
    read_back: bool = True
    """Whether to ask the RM (client RPC) which weights are in force."""
    verify_every_s: Seconds = 5.0
    """How often that is asked when nothing was written."""
    effect_s: Seconds = 5.0
    """How long a refreshed file may take to be in force."""
    full_look_every_s: Seconds = 600.0
    """How often all applications that the RM retains are asked for, not only live ones and those that ended of late."""
    count_earlier: bool = False
    """Whether what applications used before the ledger's first look counts."""
    task_lengths: bool = True
    """Whether to read containers given and given back from the RM's `/jmx`: the mean task length (for `horizon_s:
    auto`) and waits."""
    ask_again: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 10.0
    """After a slow answer (applications, `/jmx`) the controller waits this many times as long before it asks again; 0:
    every period."""
    ad_hoc: Literal["scale", "name"] = "scale"
    """Queues that the RM made by itself. `scale`: they keep the weight 1, and their siblings' weights are scaled.
    `name`: they stand in the file, with their parent's limits and weights of their own, until a minute after their
    last application."""
    accept: list[Name] = Field(default_factory=list, max_length=50)
    """Names of traps that do not keep the controller from writing. `unknown-queues`: queues of `queues` need not be
    there yet. `other-cluster`: the cluster was replaced, and its queues go on with what they are owed."""
    on_stop: OnStop = "release"
    """At SIGTERM or Ctrl-C: `release` gives the allocation file back to the administrator, or hands over to a
    spare; `hold` leaves what is in force ([how](../how-to/enforce.md))."""
    mode: Mode = "bounded"
    """`shadow`: accounts, decides, says what it would write, and writes nothing. `bounded`: weights within
    `max_ratio` of the entitlements. `full`: as the policy wants them."""
    max_ratio: Annotated[float, Field(ge=1, le=1e9, allow_inf_nan=False)] = MAX_RATIO
    """Of siblings with equal entitlements no weight is more than this many times another's ([what each bound
    costs](../decisions/bounded-weights.md))."""
    write_threshold: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.0
    """Siblings keep what was written last while no share among them would grow or shrink by this fraction or more
    (0.2: a fifth); 0: every change is written. A release, a lift, an edit of yours and what is not in force any more
    are never put off; 0.2 leaves out three writes of four ([what each costs](../decisions/write-threshold.md))."""
    preemption_budget_mb_s: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)] = 0.0
    """Where the Capacity Scheduler preempts: how much work it may kill within any hour, in MiB·s as the RM counts it
    (`preemptedMemorySeconds`: memory times the time that a container had run). While less was lost, shares may move
    below what queues use as far as the rest allows; 0: they stay near what is in use ([what each budget
    costs](../decisions/preemption-budget.md))."""
    half_life: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = HALF_LIFE_S
    """What was used this long ago counts half; `null`: nothing is forgotten ([why a day](../decisions/half-life.md)).
    A `half_life`, `window` or `round` in `settings` stands in its place; the `decay-...` policies have their own."""
    guards: Guards = Field(default_factory=Guards)
    """Past one of these limits the controller gives the file back and stays released until `--resume`
    ([how](../how-to/enforce.md))."""
    lease_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 30.0
    """Another controller may take over after this time without a sign of life. 0: no lease; else two periods at
    least."""
    http: HttpSpec = Field(default_factory=HttpSpec)
    """How REST, RPC and WebHDFS are asked."""
    metrics: MetricsSpec | None = None
    """The Prometheus page."""
    page: Name | None = None
    """`HOST:PORT` of the [live page](../how-to/enforce.md), `127.0.0.1:9809` for example."""

    @model_validator(mode="after")
    def _lease_outlasts_a_tick(self) -> EnforceConfig:
        if self.allocation_file is not None and self.capacity_file is not None:
            raise ValueError("allocation_file and capacity_file: give the one of the scheduler that the RM has")
        if self.actuator is not None and (self.allocation_file or self.capacity_file or self.rms):
            raise ValueError("actuator names a system without a ResourceManager: leave rms and its file out")
        if self.actuator is None and self.actuator_settings:
            raise ValueError("actuator_settings: give actuator too")
        if 0 < self.lease_s < 2 * self.period_s:
            raise ValueError("lease_s is less than two periods: give more, or 0 for no lease")
        return self

    def control_settings(self, *, trust_clock: TrustedClock = "") -> ControlSettings:
        """Return the controller's settings; ``trust_clock``: which clock is right, for this start only."""
        own: dict[str, Any] = {
            "entitlements": {ensure_root_prefix(queue): float(weight) for queue, weight in self.queues.items()},
            "accept": frozenset(self.accept),
            "trust_clock": trust_clock,
        }
        # All other settings are keys of the file under the same name.
        same = {field.name: getattr(self, field.name) for field in fields(ControlSettings) if field.name not in own}
        return ControlSettings(**same, **own)

    def make_policy(self, counted: ResourceName = "memory") -> Policy:
        """Create the policy with its settings.

        Parameters
        ----------
        counted
            The resource by which the cluster's scheduler counts (`harness.control.opened.Cluster.counted_resource`). A
            policy that would accumulate memory accumulates this one, unless ``settings.resource`` is given.

        Raises
        ------
        CallError
            The policy or one of its settings is not valid.
        """
        given = {name: value for name, value in self.settings.items() if value is not None}
        policy = make_policy(self.policy, given | self._memory(given) | self._counted(given, counted))
        check_counting(policy)
        return policy

    def _counted(self, given: Mapping[str, Scalar], counted: ResourceName) -> dict[str, Scalar]:
        """Return the policy's `resource` as the scheduler counts; nothing where it is given, or no memory's policy."""
        defaults = {field.name: field.default for field in fields(policy_class(self.policy).Settings)}
        follows = counted != "memory" and "resource" not in given and defaults.get("resource") == "memory"
        return {"resource": counted} if follows else {}

    def _memory(self, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return `half_life` as a setting of the policy.

        If the file does not give `half_life`, a policy that defines its own memory, or none, keeps its default.
        """
        defaults = {field.name: field.default for field in fields(policy_class(self.policy).Settings)}
        if "half_life" in self.model_fields_set:
            if "half_life" not in defaults and self.half_life is not None:
                hint = "leave half_life out"
                raise CallError(f"policy {self.policy} keeps no accounts that fade", where="half_life", hint=hint)
            if "half_life" in given:
                raise CallError("half_life is given twice", where="settings.half_life", hint="give it once")
            wanted = "half_life" in defaults
        else:
            wanted = defaults.get("half_life") == math.inf and not given.keys() & {"half_life", "window", "round"}
        return {"half_life": "inf" if self.half_life is None else self.half_life} if wanted else {}

    def fixed_keys(self, new: EnforceConfig) -> list[str]:
        """Return the changed keys that a running controller cannot take over."""
        return [name for name in _FIXED if getattr(self, name) != getattr(new, name)]

    def config_store(self) -> ConfigStore | None:
        """Return where the scheduler's file is stored; None: the configuration names no file. Raises CallError."""
        name = self.allocation_file or self.capacity_file
        return open_store(name, self.http_options()) if name is not None else None

    def actuator_opener(self, client: RmClient) -> Callable[[Document], Actuator[RmClient]]:
        """Return a function that opens the actuator of the RM's scheduler, resuming from a ledger's contents.

        Raises
        ------
        InputError
            The RM has another scheduler than this configuration is for.
        """
        kind = client.rest.scheduler().type
        store = self.config_store()
        if kind == FAIR:
            if store is None or self.capacity_file is not None:
                raise InputError(
                    "the RM has the Fair Scheduler", where=client.rest.http.current, hint="give allocation_file"
                )
            return partial(FileActuator.restored, store)
        if self.allocation_file is not None:
            raise InputError(
                "the RM has the Capacity Scheduler, which has no allocation file",
                where=client.rest.http.current,
                hint="give capacity_file, or neither where it keeps its configuration in a store",
            )
        if self.refresh == "poll":
            raise InputError("refresh: poll: the Capacity Scheduler does not poll its file", hint="take it out")
        return partial(CapacityActuator.restored, open_source(client, store))

    def offline_opener(self) -> Callable[[Document], Actuator[RmClient]] | None:
        """Return the same as `actuator_opener` if the configuration alone suffices (None: only the RM can tell).

        Raises CallError.
        """
        store = self.config_store()
        if store is None:
            return None
        if self.capacity_file is not None:
            return partial(CapacityActuator.restored, FileSource(store))
        return partial(FileActuator.restored, store)

    def ledger_path(self) -> Path:
        """Return the path of the ledger."""
        return Path(os.path.expanduser(self.ledger))

    def http_options(self) -> HttpOptions:
        """Return the HTTP options; an answer that takes longer than a few periods counts as missing."""
        return self.http.options(min(max(3 * self.period_s, 10.0), 60.0))

    def addresses(self, given: Sequence[str]) -> list[RmAddress]:
        """Return the ResourceManagers given on the command line, else the file's. Raises CallError, Unreachable."""
        known = {base_url(rm.rest): rm for rm in self.rms}
        wanted = [base_url(text) for text in given] or list(known)
        if not wanted:
            raise CallError("no ResourceManager given", hint="give --rm URL, or `rms` in the configuration")
        found: dict[str, RmAddress] = {}
        silent: Unreachable | None = None
        for base in wanted:
            rm = known.get(base)
            admin, client = (rm.admin, rm.client) if rm is not None else (None, None)
            try:
                found[base] = find_rm(base, self.http_options(), admin=admin, client=client)
            except Unreachable as error:
                silent = error
        if not found and silent is not None:
            raise silent
        # An RM that is down is assumed to have its partner's ports until they are known.
        partner = next(iter(found.values()))
        for base in wanted:
            if base not in found:
                ports = RmAddress.of(base, admin=_port(base, partner.admin), client=_port(base, partner.client))
                found[base] = ports
        return [found[base] for base in wanted]

    def open_client(self, given: Sequence[str]) -> RmClient:
        """Open a client for the ResourceManagers; a standby or stopped RM is no error (see `addresses`)."""
        return RmClient(self.addresses(given), self.http_options(), rpc_timeout_s=max(2 * self.period_s, 5.0))

    def file_trouble(self, rms: Sequence[RmAddress]) -> str | None:
        """Explain why the file may not be the one that all ResourceManagers read.

        Return None if nothing indicates this.
        """
        store, options = self.config_store(), self.http_options()
        if store is None or self.capacity_file:
            return None
        return file_of_each(rms, store, options) or another_file(rms, store, options)


def _port(base: str, partner: RpcAddress) -> str:
    host = urlsplit(base).hostname or ""
    return f"[{host}]:{partner.port}" if ":" in host else f"{host}:{partner.port}"


def read_config(path: Path) -> EnforceConfig:
    """Read the configuration. InputError with file and line, CallError for an invalid policy or setting."""
    config = validated(EnforceConfig, read_yaml(path))
    try:
        config.make_policy()
    except CallError as error:
        where = error.where or ""
        key = "policy" if where == "--policy" else where or "settings"
        if where.startswith("--set"):
            key = "settings" + where.removeprefix("--set").replace(" ", ".")
        raise CallError(error.what, where=f"{path}: {key}", hint=error.hint) from None
    return config
