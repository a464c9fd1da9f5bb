"""Accumulated resources per queue: rounds, discount, pseudo accumulated resources, quanta. No I/O."""

from harness.ledger.ledger import Ledger, Usage
from harness.ledger.quantum import Quantum

__all__ = ["Ledger", "Quantum", "Usage"]
