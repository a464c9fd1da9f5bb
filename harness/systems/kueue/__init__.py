"""Kubernetes Kueue: enforces a policy through the fair-sharing weights of a cohort's ClusterQueues. A sketch.

::

    actuator: kueue
    actuator_settings: {server: "http://127.0.0.1:8001", cohort: research}

It shows that the same core can control a system without a ResourceManager. README.md lists what it leaves out.
"""

from harness.base.extensions import Extension

EXTENSION = Extension(name="kueue", actuators={"kueue": "harness.systems.kueue.actuator:KUEUE"})
