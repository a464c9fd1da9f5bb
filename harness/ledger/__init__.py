"""Accumulated resources per queue, with rounds, discount and pseudo accumulated resources; and their store on disk."""

from harness.ledger.ledger import Ledger, Usage

__all__ = ["Ledger", "Usage"]
