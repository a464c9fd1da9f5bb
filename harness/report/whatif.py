"""The page of `yarnfair whatif`: served, or exported as one file with everything in it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from markupsafe import Markup

import harness
from harness.base.files import plain
from harness.report.serving import content_policy
from harness.report.templating import page_templates


def page(data: Mapping[str, object] | None = None) -> str:
    """Return the page; ``data``: what an exported page shows (`harness.predict.whatif.WhatIf.export`)."""
    # A text that holds "</script" would end the block.
    text = (
        "null" if data is None else json.dumps(plain(data), allow_nan=False, ensure_ascii=True).replace("<", "\\u003c")
    )
    template = page_templates().get_template("whatif.html.j2")
    made = template.render(version=harness.__version__, data=Markup(text), policy="")
    if data is None:
        return made
    policy = content_policy(made).replace("connect-src 'self'", "connect-src 'none'").partition("; frame-ancestors")[0]
    return template.render(version=harness.__version__, data=Markup(text), policy=policy)
