"""``yarnfair validate``: checks a scheduler's file, as a linter does."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from harness.base.quick import without_collector
from harness.cli.output import json_option, print_json, say

if TYPE_CHECKING:
    from harness.yarn.findings import Finding, Verdict

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS = {"error": "error", "warning": "warning", "hint": "note"}
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "hint": "notice"}


def _codes(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes and prefixes of codes of an option, split at commas. Raises BadParameter for an unknown one."""
    from harness.yarn.findings import matches
    from harness.yarn.rules import RULES

    found = [part.strip().upper() for text in value for part in text.split(",") if part.strip()]
    for code in found:
        if not any(matches(known, [code]) for known in RULES):
            raise click.BadParameter(f"there is no code {code[:20]!r}; docs/reference/validate.md has all.")
    return tuple(found)


@click.command()
@click.argument("files", type=click.Path(), nargs=-1, required=True, metavar="FILE...")
@click.option("--select", multiple=True, callback=_codes, metavar="CODES", help="Only these codes (or beginnings).")
@click.option("--ignore", multiple=True, callback=_codes, metavar="CODES", help="Not these codes (or beginnings).")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings and hints too.")
@click.option(
    "--yarn-site",
    type=click.Path(),
    metavar="FILE",
    help="The RM's yarn-site.xml: limits, resource types, monitors.",
)
@click.option(
    "--hadoop",
    metavar="VERSION",
    help="The release that has to load a capacity-scheduler.xml [each line of releases: 3.4 and 3.5].",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="How findings are printed.",
)
@json_option
@without_collector()
def validate(
    *,
    files: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    yarn_site: str | None,
    hadoop: str | None,
    form: str,
    as_json: bool,
) -> int:
    """Check scheduler files: what the ResourceManager refuses, and what it gets wrong silently.

    A FILE is an allocation file or a capacity-scheduler.xml. The exit code is 1 if there is any error, and 0 for
    warnings and hints alone. Each finding has a code; docs/reference/validate.md says what it means.
    """
    from harness.yarn.fair.parse import read_bytes
    from harness.yarn.findings import matches
    from harness.yarn.releases import release_of
    from harness.yarn.validation import check_document, read_site

    release = None if hadoop is None else release_of(hadoop).hadoop
    site = None if yarn_site is None else read_site(read_bytes(yarn_site), source=yarn_site)
    verdicts: dict[str, Verdict] = {}
    for file in files:
        verdict = check_document(read_bytes(file), source=file, site=site, hadoop=release)
        verdicts[file] = verdict.only(
            lambda found: (not select or matches(found.code, select)) and not matches(found.code, ignore)
        )
    form = "json" if as_json else form
    if form == "json":
        _print_json(verdicts)
    elif form == "sarif":
        print_json(_sarif(verdicts))
    elif form == "github":
        _print_github(verdicts)
    else:
        _print_text(verdicts)
    findings = [found for verdict in verdicts.values() for found in verdict.findings]
    failed = any(strict or found.level == "error" for found in findings)
    return 1 if failed else 0


def _print_text(verdicts: dict[str, Verdict]) -> None:
    for file, verdict in verdicts.items():
        for found in verdict.errors:
            say(found.text(file))
        for found in (*verdict.warnings, *verdict.hints):
            say(f"{found.level.value}: {found.text(file)}")
        if verdict.valid:
            click.echo(f"{file} is valid")


def _document(findings: list[Finding], file: str) -> list[dict[str, Any]]:
    return [
        {
            "file": found.file or file,
            "line": found.line,
            "queue": found.queue,
            "what": found.what,
            "hint": found.hint,
            "code": found.code,
            "level": found.level.value,
        }
        for found in findings
    ]


def _print_json(verdicts: dict[str, Verdict]) -> None:
    documents = {
        file: {
            "valid": verdict.valid,
            "errors": _document(verdict.errors, file),
            "warnings": _document([*verdict.warnings, *verdict.hints], file),
        }
        for file, verdict in verdicts.items()
    }
    if len(documents) == 1:
        print_json(next(iter(documents.values())))
    else:
        print_json({"valid": all(verdict.valid for verdict in verdicts.values()), "files": documents})


def _escaped(text: str, *, of_property: bool = False) -> str:
    """Escape a text for GitHub's workflow commands."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if of_property else text


def _print_github(verdicts: dict[str, Verdict]) -> None:
    """Print one workflow command for each finding, which GitHub shows at its line."""
    for file, verdict in verdicts.items():
        for found in verdict.findings:
            place = f"file={_escaped(found.file or file, of_property=True)},line={found.line}"
            queue = f"queue {found.queue}: " if found.queue else ""
            text = _escaped(f"{queue}{found.what}; {found.hint}")
            click.echo(f"::{_GITHUB_LEVELS[found.level]} {place},title={found.code}::{text}")


def _sarif(verdicts: dict[str, Verdict]) -> dict[str, Any]:
    """Return the findings as a SARIF 2.1.0 log."""
    import harness
    from harness.yarn.rules import RULES

    used = Counter(found.code for verdict in verdicts.values() for found in verdict.findings)
    rules = [RULES[code] for code in sorted(used)]
    index = {rule.code: number for number, rule in enumerate(rules)}
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "yarnfair",
                        "version": harness.__version__,
                        "rules": [
                            {
                                "id": rule.code,
                                "shortDescription": {"text": rule.title},
                                "fullDescription": {"text": rule.why},
                                "help": {"text": rule.fix},
                                "defaultConfiguration": {"level": _SARIF_LEVELS[rule.level]},
                            }
                            for rule in rules
                        ],
                    }
                },
                "results": [
                    {
                        "ruleId": found.code,
                        "ruleIndex": index[found.code],
                        "level": _SARIF_LEVELS[found.level],
                        "message": {
                            "text": (f"queue {found.queue}: " if found.queue else "") + f"{found.what}; {found.hint}"
                        },
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": found.file or file},
                                    "region": {"startLine": max(found.line, 1)},
                                }
                            }
                        ],
                    }
                    for file, verdict in verdicts.items()
                    for found in verdict.findings
                ],
            }
        ],
    }
