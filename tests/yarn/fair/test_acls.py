"""Access lists: who is in them to Hadoop, and what `validate` says of those that are read otherwise than meant."""

from __future__ import annotations

import pytest

from harness.yarn.fair.acls import AccessList, read_access_list
from harness.yarn.validation import check_document

#: Text -> users and groups, as Hadoop 3.4.2's own AccessControlList prints them; None: everybody.
READ: dict[str, tuple[list[str], list[str]] | None] = {
    "alice,bob admins , devs": (["alice", "bob"], ["admins", "devs"]),
    "alice, bob, carol": (["alice"], ["bob", "carol"]),
    "alice ,bob": (["alice"], ["bob"]),
    "alice bob carol": (["alice"], ["bob carol"]),
    " admins, devs": ([], ["admins", "devs"]),
    "\n alice,bob\n": ([], ["alice", "bob"]),
    "\nalice,bob\n": (["alice", "bob"], []),
    "bob,*": (["bob", "*"], []),
    "*,bob": (["*", "bob"], []),
    "* g": None,
    " *": None,
    "*": None,
    "alice\tbob": (["alice\tbob"], []),
    "  admins": ([], ["admins"]),
    "alice  admins": (["alice"], ["admins"]),
    "alice,\nbob": (["alice", "bob"], []),
    "alice;bob": (["alice;bob"], []),
    "alice bob,carol dave": (["alice"], ["bob", "carol dave"]),
    "": ([], []),
    " ": ([], []),
}


@pytest.mark.parametrize("text", READ)
def test_a_list_is_read_as_hadoop_reads_it(text: str) -> None:
    names = READ[text]
    wanted = AccessList(everybody=True) if names is None else AccessList(tuple(names[0]), tuple(names[1]))
    assert read_access_list(text) == wanted


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        # As they are meant: nothing is said.
        ("alice,bob admins, devs", []),
        (" admins, devs", []),
        (" domain users", []),
        ("\nalice,bob\n", []),
        ("alice  admins", []),
        ("* ", []),
        # Users that are read as groups.
        ("alice, bob, carol", ["YF603"]),
        ("alice bob carol", ["YF603"]),
        ("\n    alice,bob\n", ["YF603"]),
        # Names of nobody.
        ("alice;bob", ["YF516"]),
        ("alice|bob", ["YF516"]),
        ("alice\tbob", ["YF516"]),
        ("bob,*", ["YF516"]),
    ],
)
def test_what_is_said_of_a_list(text: str, codes: list[str]) -> None:
    document = (
        '<allocations><queue name="root"><aclSubmitApps> </aclSubmitApps><queue name="a">'
        f"<aclSubmitApps>{text}</aclSubmitApps></queue></queue></allocations>"
    )
    assert [found.code for found in check_document(document.encode(), source="f.xml").findings] == codes


def test_a_star_among_names_opens_nothing() -> None:
    """Root is then not open to everybody: the lists below it have an effect."""
    document = (
        '<allocations><queue name="root"><aclSubmitApps>alice,*</aclSubmitApps><queue name="a">'
        "<aclSubmitApps>bob</aclSubmitApps></queue></queue></allocations>"
    )
    assert "YF602" not in [found.code for found in check_document(document.encode(), source="f.xml").findings]
