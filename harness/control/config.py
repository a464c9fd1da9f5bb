"""The controller's configuration file (YAML): the cluster, the policy to enforce, the ledger and all settings.

Parsing is strict, as for all files that users write: an unknown key is an error with its line.
docs/reference/enforce.md explains the keys, and yarn-policy/enforce.yaml is an example. The methods of `EnforceConfig`
create the objects that the keys describe.
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
    """REST address of the RM. If `--rm` names an RM with an entry here, the ports of the entry are used."""
    admin: Name | None = None
    """Address of the admin RPC, `HOST:PORT`. Needed if the RM's configuration does not show it, or if it cannot be
    reached from here under the address shown (a tunnel)."""
    client: Name | None = None
    """Address of the client RPC, `HOST:PORT`; needed in the same cases as `admin`."""


class KerberosSpec(Strict):
    """Kerberos credentials: a principal and its keytab."""

    principal: Name
    """The Kerberos principal."""
    keytab: Name
    """Path of the principal's keytab."""


class HttpSpec(Strict):
    """Connection settings for REST, RPC and WebHDFS."""

    user: Name | None = None
    """The user name of simple authentication."""
    auth: Literal["simple", "spnego"] = "simple"
    """`simple` or `spnego`. `spnego` without `http.kerberos` uses the tickets of the process (kinit)."""
    kerberos: KerberosSpec | None = None
    """Kerberos for REST, RPC and WebHDFS."""
    ca_file: Name | None = None
    """Path of the certificates of the trusted authorities (PEM)."""
    cert_file: Name | None = None
    """Path of the controller's own certificate."""
    key_file: Name | None = None
    """Path of the certificate's private key."""
    connect_timeout_s: Seconds = 3.0
    """Longest time for opening a connection, seconds."""
    read_timeout_s: Seconds = 20.0
    """Longest time for an answer, seconds."""

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
    """The page with Prometheus metrics."""

    port: int = Field(ge=0, le=65_535)
    """Port of the page."""
    address: Name = "127.0.0.1"
    """Address on which the page is served."""


#: Keys that a running controller cannot change, because it is created with them.
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
    """The policy's settings. Without `resource`, the policies that accumulate memory by default (`ltrf`, ...)
    accumulate the resource by which the scheduler compares queues: memory, or dominant shares with the
    DominantResourceCalculator or if all Fair queues have the policy `drf`."""
    allocation_file: Name | None = None
    """Location of the allocation file: a path, `sftp://[user@]host[:port]/path`, `webhdfs://` or
    `swebhdfs://host:port/path`."""
    capacity_file: Name | None = None
    """Location of the Capacity Scheduler's capacity-scheduler.xml, in the same forms as `allocation_file`. If neither
    key is given, the RM's own configuration store is changed over REST ([how](../how-to/capacity-scheduler.md))."""
    actuator: Name | None = None
    """The system whose shares are controlled, if it is not a ResourceManager: the name of an actuator that an installed
    package adds ([contributing](../contributing.md)). `mode` and `max_ratio` then apply to its queues' weights."""
    actuator_settings: dict[str, Scalar] = Field(default_factory=dict)
    """Settings of `actuator`, as its package documents them."""
    ledger: Name
    """Path of the ledger, on a local disk. It is created if it does not exist."""
    rms: list[RmSpec] = Field(default_factory=list, max_length=16)
    """The ResourceManagers, if `--rm` does not name them."""
    queues: dict[Name, Entitlement] = Field(default_factory=dict)
    """Entitlements: queue (with or without `root.`) to a number within [0.001, 1,000,000]. The entitlement of any other
    queue is its weight in the file when the controller first reads it. A queue that does not exist is an error, unless
    `accept` contains `unknown-queues`."""
    period_s: Seconds = 5.0
    """The control period, seconds."""
    refresh: Literal["rpc", "poll"] = "rpc"
    """How the RM loads a written file. `rpc`: the controller calls `refreshQueues` of the admin RPC. `poll`: the RM
    polls the file every 10 s and loads it once it has not changed for 5 s. Writes are then at least 16 s apart (30 s
    with a period of 15 s), and a file is not replaced before it is in force; if it is not in force after 25 s, the
    alarm `not-in-force` is raised."""
    read_back: bool = True
    """Whether to query the RM (client RPC) for the weights in force."""
    verify_every_s: Seconds = 5.0
    """Time between two such queries while nothing is written, seconds."""
    effect_s: Seconds = 5.0
    """Longest time until a refreshed file is in force, seconds."""
    full_look_every_s: Seconds = 600.0
    """Time between two lists of all applications that the RM retains, seconds. Other lists contain only live
    applications and those that ended recently."""
    count_earlier: bool = False
    """Whether resources that applications used before the ledger's first poll count."""
    task_lengths: bool = True
    """Whether to read the numbers of allocated and released containers from the RM's `/jmx`. The mean task length (for
    `horizon_s: auto`) and waiting times are derived from them."""
    ask_again: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 10.0
    """After a slow answer (applications, `/jmx`), the controller waits this many times as long before the next such
    request. 0: it requests every period."""
    ad_hoc: Literal["scale", "name"] = "scale"
    """How to treat queues that the RM created by itself. `scale`: they keep the weight 1, and their siblings' weights
    are scaled. `name`: they are added to the file, with their parent's limits and with weights of their own, until a
    minute after their last application has ended."""
    accept: list[Name] = Field(default_factory=list, max_length=50)
    """Names of traps that do not prevent the controller from writing. `unknown-queues`: the queues in `queues` need not
    exist yet. `other-cluster`: the cluster was replaced, and the new cluster's queues keep the debts of the old."""
    on_stop: OnStop = "release"
    """Behaviour at SIGTERM or Ctrl-C. `release`: restore the administrator's configuration, or hand over to a standby
    controller. `hold`: leave the weights in force ([how](../how-to/enforce.md))."""
    mode: Mode = "bounded"
    """`shadow`: account, decide and report what would be written, but write nothing. `bounded`: write weights within
    `max_ratio` of the entitlements. `full`: write the weights as the policy plans them."""
    max_ratio: Annotated[float, Field(ge=1, le=1e9, allow_inf_nan=False)] = MAX_RATIO
    """Largest ratio of two siblings' weights if their entitlements are equal ([what each bound
    costs](../decisions/bounded-weights.md))."""
    write_threshold: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.0
    """Siblings keep what was written last while no share among them would grow or shrink by this fraction or more
    (0.2: a fifth); 0: every change is written. A release, a lift, an edit of yours and what is not in force any more
    are never put off; 0.2 leaves out three writes of four ([what each costs](../decisions/write-threshold.md))."""
    preemption_budget_mb_s: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)] = 0.0
    """Amount of work that the Capacity Scheduler's preemption may kill within any hour, in MiB·s as the RM counts it
    (`preemptedMemorySeconds`: memory times the time that a container had run). While the losses are below the budget,
    shares may fall below the queues' usage by as much as the rest of the budget allows. 0: shares stay near the usage
    ([what each budget costs](../decisions/preemption-budget.md))."""
    half_life: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = HALF_LIFE_S
    """Usage from this many seconds ago counts half; `null`: usage counts for ever ([why a
    day](../decisions/half-life.md)). A `half_life`, `window` or `round` in `settings` replaces it. The `decay-...`
    policies have defaults of their own."""
    guards: Guards = Field(default_factory=Guards)
    """Limits on side effects. If one is exceeded, the controller restores the administrator's configuration and writes
    nothing until `--resume` ([how](../how-to/enforce.md))."""
    lease_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 30.0
    """Another controller may take over if the lease was not renewed for this many seconds. 0: no lease; otherwise it is
    at least two periods."""
    http: HttpSpec = Field(default_factory=HttpSpec)
    """Connection settings for REST, RPC and WebHDFS."""
    metrics: MetricsSpec | None = None
    """The page with Prometheus metrics."""
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
        """Return the controller's settings. ``trust_clock``: the clock that is right, for this start only."""
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
            The resource by which the cluster's scheduler compares queues
            (`harness.control.opened.Cluster.counted_resource`). A policy whose default is memory accumulates this
            resource, unless ``settings.resource`` is given.

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
        """Return the setting `resource` for the scheduler's resource.

        Empty if the setting is given, or if the policy's default is not memory.
        """
        defaults = {field.name: field.default for field in fields(policy_class(self.policy).Settings)}
        follows = counted != "memory" and "resource" not in given and defaults.get("resource") == "memory"
        return {"resource": counted} if follows else {}

    def _memory(self, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return `half_life` as a setting of the policy.

        If the file does not give `half_life`, a policy with another default than an infinite half-life keeps it.
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
        """Return the store of the scheduler's file; None if the configuration names no file. Raises CallError."""
        name = self.allocation_file or self.capacity_file
        return open_store(name, self.http_options()) if name is not None else None

    def actuator_opener(self, client: RmClient) -> Callable[[Document], Actuator[RmClient]]:
        """Return a function that opens the actuator of the RM's scheduler, resuming from a ledger's contents.

        Raises
        ------
        InputError
            This configuration is for another scheduler than the RM's.
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
        """Return a function like `actuator_opener`'s without querying the RM; None if no file is configured.

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
        """Return the ResourceManagers given on the command line, or else those in the file.

        Raises CallError if there are none, and Unreachable if none of them answers.
        """
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
        # An RM that does not answer is assumed to have the same ports as its partner.
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
