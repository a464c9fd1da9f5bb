"""Open the cluster of a configuration: its client, its actuator and its observer, for any supported system.

Without ``actuator`` in the configuration, the cluster is a YARN cluster, and its scheduler determines the actuator.
``actuator: NAME`` selects a system that an extension has registered
(`harness.base.extensions.Extension.actuators`).

The type of the client depends on the system. Here it is an opaque ``object`` (`Cluster.client`), which is passed only
to the actuator and the observer of the same system.
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

#: Value of `actuator` in a configuration -> location of its `harness.control.interfaces.SteeredSystem`. YARN's two
#: actuators are not registered, because the ResourceManager's scheduler determines which of them is used.
SYSTEMS = Registry({}, "actuators")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster of a configuration.

    Parameters
    ----------
    client
        The connection to the cluster.
    open_actuator
        Function that opens the actuator, which resumes from the contents of a ledger.
    open_observer
        Function that opens the observer of one controller.
    address
        Name of the cluster in messages.
    counted_resource
        Function that returns the resource by which the scheduler compares queues, from the configuration that the
        given actuator reads.
    trouble
        Function that explains why the configuration to be written may not be the one that the cluster reads (None:
        nothing indicates this).
    """

    client: object
    open_actuator: Callable[[Document], Actuator[object]]
    open_observer: Callable[[object, ObserverContext], Observer]
    address: str
    counted_resource: Callable[[Actuator[object]], ResourceName] = lambda _: "memory"
    trouble: Callable[[], str | None] = lambda: None


def system_of(config: EnforceConfig) -> SteeredSystem[object] | None:
    """Return the system that a configuration names with `actuator`; None if it names none, which means YARN.

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
        REST addresses of ResourceManagers that replace the configuration's.
    stack
        The exit stack that closes the connection.

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
        # The RM's scheduler is requested only here, so that a controller first reports problems of the file
        # (`Cluster.trouble`).
        return cast("Actuator[object]", config.actuator_opener(client)(document))

    return Cluster(
        client=client,
        # These functions only ever get the RmClient created above.
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
    """Create the policy of a configuration so that it accumulates the resource by which the scheduler compares queues.

    Parameters
    ----------
    config
        The controller's configuration.
    cluster
        The opened cluster.
    actuator
        The cluster's actuator.
    store
        The ledger. If the scheduler's configuration cannot be read, or another cluster answers, the policy accumulates
        the resource of the stored accounts, because these would be lost otherwise.

    Returns
    -------
    tuple[Policy, str]
        The policy, and a message about the accumulated resource ('' if the scheduler compares memory or the policy does
        not depend on it).

    Raises
    ------
    CallError
        The policy or one of its settings is not valid.
    Unreachable
        The store of the scheduler's configuration does not answer.
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
    """Return a function that opens the actuator without the cluster, for example for a release.

    None if only the cluster knows the scheduler's configuration.
    """
    if config.actuator is not None:
        return None
    return cast("Callable[[Document], Actuator[object]] | None", config.offline_opener())


def check_known(config: EnforceConfig, client: object, store: LedgerStore) -> None:
    """Check that the cluster that answers is the ledger's, for a release on the command line.

    Only ResourceManagers are checked: the address of another system is a setting of the configuration.

    Raises
    ------
    OtherCluster
        Another cluster answers.
    """
    if config.actuator is None:
        check_cluster(cast("RmClient", client), config.control_settings(), store)
