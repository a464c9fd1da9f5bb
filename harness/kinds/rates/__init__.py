"""Computing rates (HotCloud 2011, progress share; docs/reference/progress-share.md)."""
