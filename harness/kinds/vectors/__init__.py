"""Several resources on servers (QKnober; docs/reference/vectors.md)."""
