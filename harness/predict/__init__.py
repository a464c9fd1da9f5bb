"""Predictions: a trace replayed under other policies and settings, with bands; `assess`, `replay`, `whatif`.

::

    verdict   turns numbers into yes, no or unsure, with sentences (pure)
    playing   a trace simulated under a policy, in many phases of heartbeats and control
    bands     the band of a replay's predictions
    assess    the steps: present policy, reproduction, candidates, verdict
    foreign   traces from other tools: SLS, Rumen, SWF, CSV, a job history folder
    replay    `yarnfair replay`: a trace as an experiment
    whatif    the page where settings are dragged and the run is recomputed
    writing   enforce.yaml and the page
"""
