"""Campaigns: many runs of experiments, on several executors, which can be interrupted and resumed."""
