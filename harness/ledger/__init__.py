"""Accumulated resources per queue: rounds, discount, pseudo accumulated resources. No I/O."""

from harness.ledger.ledger import Ledger, Usage

__all__ = ["Ledger", "Usage"]
