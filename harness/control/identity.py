"""Decide whether the ResourceManager that answers belongs to the ledger's cluster. No I/O.

A ResourceManager has no permanent name: its cluster timestamp changes with each restart, and each member of a
high-availability pair has its own. A new timestamp may mean a restart, a failover, or another cluster behind the
address. They are distinguished by properties that ResourceManagers of one cluster share: applications (with a state
store), nodes, and the cluster's name in a configuration with high availability.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from harness.base.errors import InputError

#: In ``accept``: treat any cluster that answers as the ledger's.
ACCEPT_OTHER = "other-cluster"
#: Maximum number of nodes or applications named in a message.
_MOST_NAMED = 3


class OtherCluster(InputError):
    """The ResourceManager that answers belongs to another cluster."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Properties that the ResourceManagers of one cluster share.

    ``name``: ``yarn.resourcemanager.cluster-id`` ('': not known); ``hosts``: the hosts of its nodes (empty: not known).
    """

    name: str = ""
    hosts: frozenset[str] = frozenset()

    def document(self) -> dict[str, Any]:
        """Return the identity as the JSON object that a ledger stores."""
        return {"name": self.name, "hosts": sorted(self.hosts)}

    @classmethod
    def restored(cls, document: object) -> ClusterFacts:
        """Restore from `document`; invalid content yields facts without any information."""
        if not isinstance(document, Mapping):
            return cls()
        return cls(str(document.get("name", "")), frozenset(map(str, document.get("hosts", ()))))


def why_another(
    known: ClusterFacts,
    shown: ClusterFacts,
    *,
    shares_apps: bool,
    strangers: Collection[str],
    restarted: bool = False,
) -> str:
    """Explain why a ResourceManager with a new cluster timestamp belongs to another cluster ('': it may be the same).

    Parameters
    ----------
    known : ClusterFacts
        Facts stored in the ledger.
    shown : ClusterFacts
        Facts that the ResourceManager shows.
    shares_apps : bool
        Whether the RM shows an application that the accounts contain. The cluster is then the same, regardless of all
        other facts.
    strangers : Collection[str]
        Applications that the RM shows and that started before the last poll, although no poll has shown them.
    restarted : bool
        Whether the RM was started since the last poll at the same address. In a cloud, all nodes may then be new.
    """
    if shares_apps:
        return ""
    if known.name and shown.name and known.name != shown.name:
        return f"its cluster is called {shown.name[:60]!r}, the one that is known {known.name[:60]!r}"
    if strangers:
        named = ", ".join(sorted(strangers)[:_MOST_NAMED])
        return f"it shows applications that were there at the last look, which did not show them ({named})"
    if known.hosts and shown.hosts and not known.hosts & shown.hosts and not restarted:
        ours, theirs = (", ".join(sorted(hosts)[:_MOST_NAMED]) for hosts in (known.hosts, shown.hosts))
        return f"none of its nodes is known (it has {theirs}; known are {ours})"
    return ""


def another_cluster(address: str, why: str) -> OtherCluster:
    """Create the error, with advice on what to do."""
    return OtherCluster(
        f"the ResourceManager at {address} is another cluster's: {why}; nothing is counted and nothing is written",
        hint="set the address right; if the cluster was replaced, run --release and give the new one another ledger, "
        f"or keep what its queues are owed: `accept: [{ACCEPT_OTHER}]`",
    )
