"""The papers' systems other than long-term fairness, one package each.

A package has a system's policies, cluster model, experiment types, scenarios on paper and report pages. It declares
them in its ``EXTENSION`` (`harness.base.extensions.Extension`), as an installed package of a user does. The core works
without these packages and never imports them.
"""
