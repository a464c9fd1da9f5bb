"""Would long-term fairness help this cluster? A trace replayed under the present policy and under candidates.

::

    verdict   from numbers to yes, no or unsure, in words (pure)
    playing   a trace simulated under a policy, in many phases of heartbeats and control
    bands     the band of a replay's predictions
    assess    the steps: present policy, reproduction, candidates, verdict
    foreign   traces that nobody here recorded: SLS, Rumen, a job history folder
    writing   enforce.yaml and the page
"""
