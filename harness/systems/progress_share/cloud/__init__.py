"""Pools of nodes and their cost (HotCloud 2011; docs/reference/progress-share.md)."""
