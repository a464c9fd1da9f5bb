"""yarnfair: long-term and hierarchical fairness for an unmodified YARN cluster, and the harness that shows it.

Rooms, from the bottom: ``model`` (what every part speaks), ``ledger``, ``policies``, ``yarn`` and ``sim``,
then ``control``, ``jobs``, ``clusters``, ``results`` and ``report``, then ``experiments``, then ``cli``.
Imports point down only.
"""

__version__ = "0.1.0"
