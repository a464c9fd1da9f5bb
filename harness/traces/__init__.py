"""Reading what ran on a cluster: the formats of other tools, container sizes, the account of what was left out."""
