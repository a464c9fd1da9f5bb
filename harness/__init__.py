"""yarnfair: long-term and hierarchical fairness for an unmodified YARN cluster, and the harness that shows it.

Layers, from the bottom: ``model`` (the terms that all parts share), ``ledger``, ``policies``, ``yarn`` and ``sim``,
then ``control``, ``jobs``, ``clusters``, ``results`` and ``report``, then ``experiments``, then ``cli``. A package
imports only packages of lower layers.
"""

__version__ = "0.1.0"
