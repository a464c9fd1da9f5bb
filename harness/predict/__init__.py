"""Predictions from a recorded trace: `assess`, `replay`, `whatif`, `plan` and `usage`.

::

    playing     a trace simulated under a policy, in many phases of heartbeats and control
    bands       the band of a replay's predictions
    foreign     traces from other tools, read as recordings
    converting  `yarnfair data convert`: files of other systems as a trace
    replay      `yarnfair replay`: a trace as an experiment
    simulated_run  a simulated run's directory as a trace
    verdict     turns numbers into yes, no or unsure, with sentences (pure)
    assess      the steps of `yarnfair assess`; page and writing: its files
    whatif      the page where settings are dragged and the run is recomputed
    changes     a change of one queue as values with bands, and the rules of a gate (pure)
    plan        `yarnfair plan`: a change simulated before and after; plan_* and answer: its parts
    usage       `yarnfair usage`: what queues had, lent and borrowed; usage_page, payback
    features    what yarnfair does with each feature of a cluster; feature, support
"""
