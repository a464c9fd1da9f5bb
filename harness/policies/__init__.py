"""Fairness policies, one file each, and shared code. A policy is a pure function (Snapshot, LedgerView) -> Plan."""

from harness.policies.base import CountedLedger, LedgerView, Policy
from harness.policies.registry import POLICIES, make_policy, policy_names, settings_of

__all__ = ["POLICIES", "CountedLedger", "LedgerView", "Policy", "make_policy", "policy_names", "settings_of"]
