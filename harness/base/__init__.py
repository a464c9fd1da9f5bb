"""What every room stands on: errors, whole files, YAML documents with lines, statistics over runs."""
