"""What the command line says, with its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from perdure.cli.main import main
from tests.cli.commands import STEPS, chain, task
from tests.docs.messages.case import Case, Section

GREETING = chain("greeting", task("greet", "greet", {"name": "{{input.name}}"}))
REFUSED = chain("refused", task("refuse", "refuse", {"text": "x"}))
SECRET = chain("secret", task("greet", "greet", {"name": "{{secrets.key}}"}))
FILES: dict[str, Any] = {"greeting.json": GREETING, "refused.json": REFUSED, "secret.json": SECRET}


def command(key: str, title: str, typed: str, *before: str, do: str = "", **files: str) -> Case:
    """A command in a folder with the files, steps.py, and what `before` left there."""

    def say(folder: Path) -> str:
        for name, document in FILES.items():
            (folder / name).write_text(json.dumps(document, indent=2), encoding="utf-8")
        (folder / "steps.py").write_text(STEPS, encoding="utf-8")
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
        for line in before:
            CliRunner().invoke(main, line.split()[1:], catch_exceptions=False)
        words = typed.split()[1:]
        result = CliRunner().invoke(main, [w.strip("'") for w in words])
        assert result.exit_code not in (0, 70), result.output
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        kept = [line for line in lines if not line[:2].isdigit()] or result.stdout.splitlines()
        return "\n".join([*kept, f"(exit code {result.exit_code})"])

    return Case(f"command.{key}", title, typed, say, do, "sh")


START = 'perdure start greeting.json --id 1 --input {"name":"ann"}'
ASKING = """
from perdure import Context, Signal, workflow

count = Signal("count", int)


@workflow(max_duration="1d")
async def asks(ctx: Context) -> int:
    return await ctx.wait(count)
"""
RUN = "perdure run greeting.json --app steps.py"
SECTIONS = [
    Section(
        "The command line",
        "What Python raises, the commands say as it stands, with the exit codes of "
        "[cli.md](cli.md). Beside that:",
        [
            command("no-app", "the steps of a document are not named", "perdure run greeting.json"),
            command("no-step", "the app lacks a step",
                    "perdure run greeting.json --app other.py",
                    other_py="from perdure import step\n\n@step\ndef shout() -> None: ...\n"),
            command("no-decorator", "a function that was not made a step",
                    "perdure run greeting.json --app plain.py",
                    plain_py="from steps import shout\n\ndef greet(name): ...\n"),
            command("no-file", "an app that is not there",
                    "perdure run greeting.json --app none.py"),
            command("broken-app", "an app that cannot be imported",
                    "perdure run greeting.json --app broken.py", broken_py="import nowhere\n"),
            command("no-attribute", "an attribute that is not there",
                    "perdure run greeting.json --app steps:everything"),
            command("no-document", "a document that is not there",
                    "perdure run none.json --app steps.py"),
            command("input", "an input that is no JSON", f"{RUN} --input name=ann",
                    do="Write it as JSON in quotes: `--input '{\"name\": \"ann\"}'`."),
            command("input-file", "a file of input that is not there", f"{RUN} --input @none.json"),
            command("secret", "a secret that is not set",
                    "perdure run secret.json --app steps.py"),
            command("failed", "a run that failed",
                    "perdure run refused.json --app steps.py --id 1"),
            command("no-run", "a run that is not there", "perdure show greeting/7",
                    START),
            command("no-store", "a store that is not there", "perdure show greeting/1"),
            command("run-name", "a run that is named by its id alone", "perdure show 1"),
            command("not-ended", "the result of a run that has not ended",
                    "perdure result greeting/1", START),
            command("retry-active", "a retry of a run that has not ended",
                    "perdure retry greeting/1", START),
            command("signal-ended", "a signal to a run that has ended",
                    "perdure signal greeting/1 go", START, f"{RUN} --id 1"),
            command("signal-value", "a value that is no JSON",
                    "perdure signal greeting/1 go yes", START),
            command("signal-type", "a value that the code of a workflow does not take",
                    "perdure signal asks/1 count '\"two\"' --app asking.py",
                    "perdure start asking.py --id 1", asking_py=ASKING),
            command("no-module", "a module that is not there",
                    "perdure run greeting.json --app nowhere"),
            command("app-name", "an app whose name is none",
                    "perdure run greeting.json --app :steps"),
            command("app-kind", "an app that is no step",
                    "perdure run greeting.json --app steps:called"),
            command("project", "a pyproject.toml that is no TOML", "perdure run greeting.json",
                    pyproject_toml="[tool"),
            command("project-app", "an app that is a number", "perdure run greeting.json",
                    pyproject_toml="[tool.perdure]\napp = [5]\n"),
            command("config", "a config that is a list", f"{RUN} --config []"),
            command("input-deep", "an input of lists in lists", f"{RUN} --input @deep.json",
                    deep_json="[" * 100_000),
            command("retry-both", "two ways to retry", "perdure retry greeting/1 --from a --failed",
                    START),
            command("input-half", "an input with half a character", f'{RUN} --input "\\ud800"'),
            command("lint-nothing", "lint of nothing", "perdure lint"),
            command("worker-nothing", "a worker that serves nothing", "perdure worker steps.py"),
            command("no-workflow", "a workflow that nobody published", "perdure start gretting",
                    START),
            command("which-runs", "a cancel of nothing", "perdure cancel", START),
            command("both-ways", "a run and a condition",
                    "perdure cancel greeting/1 --where workflow=greeting", START),
            command("confirm", "a bulk action that nobody confirmed",
                    "perdure cancel --where workflow=greeting --json", START),
            command("no-version", "a version that is not there",
                    "perdure start greeting --version 9", START),
            command("file-version", "a version of a file",
                    "perdure start greeting.json --version 9"),
            command("export-what", "an export of nothing", "perdure export", START),
            command("export-running", "an export of a run that goes on",
                    "perdure export greeting/1", START),
            command("draw-kind", "a drawing of another kind",
                    "perdure draw greeting.json -o greeting.png"),
            command("memory", "a store that no other process sees",
                    "perdure start greeting.json --store memory:"),
            command("option", "an option that does not exist", "perdure run greeting.json --ap x"),
        ],
    )
]  # fmt: skip
