"""Fairness policies, one file each, and what they share. Pure: (Snapshot, LedgerView) -> Plan. No clock, no I/O."""

from harness.policies.base import CountedLedger, LedgerView, Policy
from harness.policies.registry import POLICIES, make_policy, policy_names, settings_of

__all__ = ["POLICIES", "CountedLedger", "LedgerView", "Policy", "make_policy", "policy_names", "settings_of"]
