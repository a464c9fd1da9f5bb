"""``yarnfair bench``: the performance figures of this machine, beside a calibration loop."""
