"""The base of all packages: errors, atomic file writes, YAML documents with lines, statistics over runs."""
