"""The systems of the papers besides long-term fairness, one package each.

A system has its policies, its model of a cluster, its experiment types, its scenarios on paper and its report pages in
one package, and declares them in its ``EXTENSION`` (`harness.base.extensions.Extension`): the same way in which an
installed package of a user's adds its own. The core works without this package and never imports it.
"""
