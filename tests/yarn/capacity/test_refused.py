"""Each reason for which the RM refuses a capacity-scheduler.xml is found, with its code and its line, and said once.

That Hadoop refuses exactly these is shown by tests/oracle/test_capacity_loading.py.
"""

from __future__ import annotations

import pytest

from harness.yarn.rules import RULES
from harness.yarn.validation import check_document
from tests.yarn import site_refused
from tests.yarn.capacity.refused import FINE, REFUSED, TREES, changed, configuration


@pytest.mark.parametrize(("name", "tree", "changes", "code"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_the_rm_refuses_is_an_error(
    name: str, tree: dict[str, str], changes: dict[str, str | None], code: str
) -> None:
    verdict = check_document(configuration(changed(tree, changes)), source="c.xml")
    assert verdict.refused
    assert code in [found.code for found in verdict.errors], verdict.errors
    of_file = [found for found in verdict.findings if found.code == code]
    assert all(1 <= found.line <= len(tree) + len(changes) + 2 for found in of_file)
    # One mistake is one message: nothing of another kind is refused beside it.
    assert {found.code for found in verdict.findings if found.refused} == {code}


@pytest.mark.parametrize(("name", "tree", "changes"), FINE, ids=[row[0] for row in FINE])
def test_what_the_rm_takes_is_no_error(name: str, tree: dict[str, str], changes: dict[str, str | None]) -> None:
    assert check_document(configuration(changed(tree, changes)), source="c.xml").errors == []


@pytest.mark.parametrize("name", TREES)
def test_the_good_trees_are_valid(name: str) -> None:
    assert check_document(configuration(TREES[name]), source="c.xml").errors == []


def test_the_list_has_every_code_of_the_capacity_scheduler_that_is_refused() -> None:
    # These need yarn-site.xml: test_validate.py has them, or the list of what is refused of that file.
    elsewhere = {"YF102", "YF104", "YF119"} | {row[0] for row in site_refused.REFUSED}
    codes = {code for code, rule in RULES.items() if rule.refused and "YF100" < code < "YF200"}
    assert codes == {row[3] for row in REFUSED} | elsewhere
