"""The cluster of a configuration, opened: its client, its actuator and its observer, whatever system it is.

Without ``actuator`` in the configuration the cluster is a ResourceManager's, which tells which actuator it needs.
With ``actuator: NAME`` it is what an extension has registered (`harness.base.extensions.Extension.actuators`).

The type of the client is the system's own affair: here it is an opaque ``object`` that goes from `Cluster.client` to
the actuator and the observer that were opened with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

from harness.base.errors import CallError, InputError
from harness.base.extensions import Registry, load
from harness.control.actuator import BaseActuator
from harness.control.config import EnforceConfig
from harness.control.interfaces import Actuator, Document, Observer, ObserverContext, SteeredSystem
from harness.control.rm_poller import check_cluster, open_rm_poller
from harness.ledger.store import LedgerStore
from harness.model.plan import ResourceName
from harness.policies import Policy
from harness.yarn.errors import Unreachable
from harness.yarn.rmclient import RmClient

#: The value of `actuator` in a configuration -> where its `harness.control.interfaces.SteeredSystem` is. The two
#: actuators of YARN are not named: the ResourceManager says which one it needs.
SYSTEMS = Registry({}, "actuators")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster of a configuration.

    Parameters
    ----------
    client
        The connection to it.
    open_actuator
        Opens its actuator, which goes on from what a ledger has kept.
    open_observer
        Opens the observer of one controller.
    address
        What messages call it.
    counted_resource
        By which resource its scheduler compares queues, as the configuration that an actuator reads says.
    trouble
        Says why the configuration that would be written may be another than the cluster reads; None: nothing says so.
    """

    client: object
    open_actuator: Callable[[Document], Actuator[object]]
    open_observer: Callable[[object, ObserverContext], Observer]
    address: str
    counted_resource: Callable[[Actuator[object]], ResourceName] = lambda _: "memory"
    trouble: Callable[[], str | None] = lambda: None


def system_of(config: EnforceConfig) -> SteeredSystem[object] | None:
    """Return the system that a configuration names with `actuator`; None: it names none, so it is YARN.

    Raises
    ------
    CallError
        No extension has an actuator of that name.
    """
    if config.actuator is None:
        return None
    if config.actuator not in SYSTEMS:
        known = f"there are {', '.join(sorted(SYSTEMS))}" if SYSTEMS else "no extension adds one"
        raise CallError(
            f"no actuator {config.actuator!r}", where="actuator", hint=f"{known}; leave it out for a ResourceManager"
        )
    return cast("SteeredSystem[object]", load(SYSTEMS[config.actuator]))


def open_cluster(config: EnforceConfig, rms: Sequence[str], stack: ExitStack) -> Cluster:
    """Open the cluster of a configuration.

    Parameters
    ----------
    config
        The controller's configuration.
    rms
        REST addresses of ResourceManagers in place of the configuration's.
    stack
        Closes the connection.

    Raises
    ------
    YarnfairError
        The configuration does not fit the cluster, or the cluster does not answer.
    """
    system = system_of(config)
    if system is not None:
        if rms:
            raise CallError(
                "--rm goes with a ResourceManager", where=f"actuator: {config.actuator}", hint="leave it out"
            )
        settings = config.actuator_settings
        other = stack.enter_context(system.open_client(settings, config.http_options()))
        return Cluster(
            client=other,
            open_actuator=lambda document: system.open_actuator(settings, other, document),
            open_observer=system.open_observer,
            address=system.address(settings),
        )
    client = stack.enter_context(config.open_client(rms))

    def open_yarn(document: Document) -> Actuator[object]:
        # Asks the RM for its scheduler: a controller first says what is wrong with the file (`Cluster.trouble`).
        return cast("Actuator[object]", config.actuator_opener(client)(document))

    return Cluster(
        client=client,
        # These take the RmClient that is beside them, and are given no other.
        open_actuator=open_yarn,
        open_observer=cast("Callable[[object, ObserverContext], Observer]", open_rm_poller),
        address=", ".join(rm.rest for rm in client.rms),
        counted_resource=_counted_by_yarn,
        trouble=lambda: config.file_trouble(client.rms),
    )


def _counted_by_yarn(actuator: Actuator[object]) -> ResourceName:
    assert isinstance(actuator, BaseActuator)
    return actuator.counted_resource()


def counting_policy(
    config: EnforceConfig, cluster: Cluster, actuator: Actuator[object], store: LedgerStore
) -> tuple[Policy, str]:
    """Create the policy of a configuration so that it counts as the cluster's scheduler does.

    Parameters
    ----------
    config
        The controller's configuration.
    cluster
        The cluster, opened.
    actuator
        Its actuator.
    store
        The ledger. While the scheduler's configuration cannot be read, or another cluster answers, the policy counts as
        it did when the ledger was kept: otherwise its accounts would be lost.

    Returns
    -------
    tuple[Policy, str]
        The policy, and what it counts in words where it follows the scheduler in counting something else than memory.

    Raises
    ------
    CallError
        The policy or one of its settings is not valid.
    Unreachable
        The place of the scheduler's configuration does not answer.
    """
    policy = config.make_policy()
    if config.make_policy("dominant").settings == policy.settings:
        return policy, ""
    kept = store.document("policy")
    settings = kept[1] if isinstance(kept, list) and len(kept) == 2 and isinstance(kept[1], dict) else None
    words = ""
    try:
        if settings is not None and actuator.beside is None:
            check_known(config, cluster.client, store)
        counted = cluster.counted_resource(actuator)
    except Unreachable:
        raise
    except InputError as error:
        counted = "dominant" if settings is not None and settings.get("resource") == "dominant" else "memory"
        words = f" (what it counts cannot be read: {error.what}; it is asked again at the next start)"
    if counted == "memory" and not words:
        return policy, ""
    noun = "memory" if counted == "memory" else f"the {counted} resource"
    return config.make_policy(counted), f"accounts are of {noun}{words or ', as the scheduler counts'}"


def offline_opener(config: EnforceConfig) -> Callable[[Document], Actuator[object]] | None:
    """Return what opens the actuator without the cluster; None: the configuration does not tell where its values are.

    A release needs no cluster where a file holds the values.
    """
    if config.actuator is not None:
        return None
    return cast("Callable[[Document], Actuator[object]] | None", config.offline_opener())


def check_known(config: EnforceConfig, client: object, store: LedgerStore) -> None:
    """Whether the cluster that answers is the one of the ledger, for a release on the command line.

    Only a ResourceManager is asked: another system's address is a setting of the configuration.

    Raises
    ------
    OtherCluster
        It is another one.
    """
    if config.actuator is None:
        check_cluster(cast("RmClient", client), config.control_settings(), store)
