"""The command `perdure` and what every command shares: its name, its errors, its exit code.

Command files import click alone; the engine is imported inside a command when it is called, so
that `perdure --help` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from perdure.cli.completion import completion
from perdure.cli.database import db
from perdure.cli.definitions import definitions
from perdure.cli.demo.command import demo
from perdure.cli.doctor.command import doctor
from perdure.cli.draw import draw
from perdure.cli.exits import (
    INTERRUPTED,
    JSON,
    UNEXPECTED,
    UNREAD,
    UNWRITTEN,
    USAGE,
    Trouble,
    trouble_of,
)
from perdure.cli.export import export
from perdure.cli.importing import import_runs
from perdure.cli.lint import lint
from perdure.cli.list import list_runs
from perdure.cli.publish import publish
from perdure.cli.rehearse import rehearse
from perdure.cli.result import result
from perdure.cli.retry import retry
from perdure.cli.run import run
from perdure.cli.say import say
from perdure.cli.send import cancel, pause, signal, unpause
from perdure.cli.show import show
from perdure.cli.start import start
from perdure.cli.steps import steps
from perdure.cli.streams import is_of_output, open_closed, show_everything, silence
from perdure.cli.watch import watch
from perdure.cli.why import why
from perdure.cli.worker import worker

#: The key of the context under which it stands that `--json` was among the words.
ASKED: Final = "perdure.json-asked"
_NO_EXITS: Final = "raise an Exception where a step or workflow is to fail, and exit nowhere else"


class Commands(click.Group):
    """A group whose commands end with one clear message, never with a traceback."""

    def main(self, *args: Any, **options: Any) -> Any:
        """As any command's. A message that cannot be shown keeps its exit code."""
        open_closed()
        show_everything()
        self._code = UNWRITTEN
        try:
            return super().main(*args, **options)
        except OSError:
            silence(sys.stdout)
            silence(sys.stderr)
            sys.exit(self._code)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether `--json` is there at all: an error may come before it is read."""
        words = args[: args.index("--")] if "--" in args else args
        ctx.meta[ASKED] = "--json" in words
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every exception becomes a message and an exit code."""
        try:
            return self._invoke(ctx)
        except click.ClickException as error:
            self._code = error.exit_code
            raise

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if ctx.meta.get(JSON) or ctx.meta.get(ASKED):
                ctx.meta[JSON] = True
                raise Trouble(error.format_message(), USAGE, "usage") from None
            raise
        except (click.ClickException, click.exceptions.Exit):
            raise
        except SystemExit as error:
            # Of users' code: its number would be read as one of ours.
            why = f"the code that it ran ended the process: SystemExit({error.code!r})"
            raise Trouble(f"{why}; {_NO_EXITS}", UNEXPECTED, "exit") from error
        except (click.Abort, KeyboardInterrupt):
            raise Trouble("interrupted", INTERRUPTED, "interrupted") from None
        except BrokenPipeError:
            # Whoever read the output had enough. What is still to be flushed goes nowhere.
            silence(sys.stdout)
            raise click.exceptions.Exit(UNREAD) from None
        except OSError as error:
            if is_of_output(error):
                silence(sys.stdout)
                why = f"the output cannot be written: {error.strerror}"
                raise Trouble(why, UNWRITTEN, "output") from None
            raise trouble_of(error) from error
        except Exception as error:
            raise trouble_of(error) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what they are for."""
        width = max(len(name) for name in self.commands)
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                room = formatter.width - width - 6
                rows = [(c.name or "", c.get_short_help_str(room)) for c in commands]
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    say(f"perdure {version('perdure')}")
    ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
    help="Show the version and exit.",
)  # fmt: skip
def main() -> None:
    """Durable workflows: a run survives the process that started it.

    Exit codes: 0 ok, 1 the run failed, 2 wrong usage, document or input, 3 not found,
    4 timed out waiting, 5 the store cannot be used.
    """


SECTIONS: Final[Mapping[str, Sequence[click.Command]]] = {
    "Work": (run, worker, start),
    "Look": (list_runs, show, watch, why, result),
    "Act": (signal, cancel, pause, unpause, retry),
    "Documents": (lint, draw, rehearse, steps, publish, definitions),
    "Store": (db, export, import_runs, doctor),
    "Else": (completion, demo),
}

for section in SECTIONS.values():
    for command in section:
        main.add_command(command)
