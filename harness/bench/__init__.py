"""``yarnfair bench``: performance measurements of this machine, compared with a calibration loop."""
