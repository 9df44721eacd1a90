"""`perdure lint`: what is wrong with documents, and what is doubtful, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from perdure.cli.app import find_apps, load_apps
from perdure.cli.exits import USAGE, usage
from perdure.cli.findings import findings_in
from perdure.cli.options import FileType, json_option
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.target import document

if TYPE_CHECKING:
    from perdure.model.graph_rules import Finding


@click.command(short_help="Check documents before anything runs.")
@click.argument("files", metavar="FILE...", nargs=-1, type=FileType())
@click.option("--app", "apps", multiple=True, metavar="APP", type=FileType(),
              help="Check calls of steps too: file.py, module or module:attr.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of documents instead.")
@json_option
def lint(
    files: tuple[str, ...], apps: tuple[str, ...], strict: bool, schema: bool, as_json: bool
) -> None:
    """Check workflow documents (- for standard input); exits with 2 if one has errors."""
    if schema:
        from perdure.graph.schema import json_schema

        print_json(json_schema())
        return
    if not files:
        raise usage("name the documents to check: perdure lint FILE...")
    for file in files:
        if file.endswith(".py"):
            document(file)  # says what there is for Python instead
    found_apps = find_apps(apps)
    known = load_apps(found_apps) if found_apps else None
    checked = {file: findings_in(file, known) for file in files}
    if as_json:
        print_json({"files": [_json(file, found) for file, found in checked.items()]})
    else:
        for file, found in checked.items():
            _print(file, found)
    bad = {"error", "warning"} if strict else {"error"}
    if any(finding.severity in bad for found in checked.values() for finding in found):
        click.get_current_context().exit(USAGE)


def _json(file: str, found: list[Finding]) -> dict[str, Any]:
    errors = sum(finding.severity == "error" for finding in found)
    return {
        "file": file,
        "ok": not errors,
        "errors": errors,
        "warnings": len(found) - errors,
        "findings": [
            {
                "severity": finding.severity,
                "line": finding.line or None,
                "column": finding.column or None,
                "pointer": finding.pointer,
                "node": finding.node,
                "message": finding.message,
                "hint": finding.hint,
            }
            for finding in found
        ],
    }


def _print(file: str, found: list[Finding]) -> None:
    for finding in found:
        say(f"{finding.place(file)}: {finding.severity}: {finding.text}")
    if not found:
        say(f"{file}: ok")
