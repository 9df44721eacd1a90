"""What commands have in common on the command line: `--store`, `--json`, a run's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from perdure.cli.exits import JSON
from perdure.cli.inputs import typed
from perdure.cli.stores import DEFAULT_STORE

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

if TYPE_CHECKING:  # generic for type checkers alone, in older versions of click
    TextType = click.ParamType[Any]
else:
    TextType = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])


class RunName(NamedTuple):
    """A run as people name it: `workflow/id`."""

    workflow: str
    id: str

    def __str__(self) -> str:
        return f"{self.workflow}/{self.id}"


class RunNameType(TextType):
    """`workflow/id`; the id may hold further slashes."""

    name = "workflow/id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The two parts; complains when there are not two."""
        workflow, slash, id = typed(str(value)).partition("/")
        if not slash or not workflow or not id:
            self.fail(f"{value!r} is not a run: write workflow/id, such as order/o-1", param, ctx)
        return RunName(workflow, id)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Runs of the store."""
        from perdure.cli.completing import runs

        return runs(ctx, incomplete)


class RunOrTextType(TextType):
    """Words of which the first may be a run."""

    name = "text"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Runs of the store, for the first word."""
        from perdure.cli.completing import runs

        return [] if ctx.params.get(param.name or "") else runs(ctx, incomplete)


class WorkflowType(TextType):
    """The name of a workflow."""

    name = "workflow"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Workflows that the store knows."""
        from perdure.cli.completing import workflows

        return workflows(ctx, incomplete)


class FileType(TextType):
    """The name of a file; completed by the shell."""

    name = "file"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Files, as the shell finds them."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class FileOrWorkflowType(WorkflowType):
    """A file, or the name of a workflow: both are completed."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Workflows that the store knows, then files."""
        from perdure.cli.completing import with_files

        return with_files(super().shell_complete(ctx, param, incomplete), incomplete)


class DrawableType(FileOrWorkflowType):
    """A file, the name of a workflow, or a run."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Workflows, or after a slash runs, that the store knows, then files."""
        from perdure.cli.completing import runs, with_files

        if "/" in incomplete:
            return with_files(runs(ctx, incomplete), incomplete)
        return super().shell_complete(ctx, param, incomplete)


class DurationType(TextType):
    """`30s`, `5m`, or a number of seconds; gives seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Seconds as a number; complains about what is no duration."""
        from perdure.model.durations import SECOND, microseconds
        from perdure.model.errors import InvalidOptions

        try:
            try:
                return microseconds(float(value)) / SECOND
            except ValueError:
                return microseconds(value) / SECOND
        except InvalidOptions as error:
            self.fail(str(error), param, ctx)


def _remember_json(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    ctx.meta[JSON] = value
    return value


def store_option(command: F) -> F:
    """`--store URL`, else PERDURE_STORE, else perdure.db in the current folder."""
    return click.option(
        "--store", metavar="URL", envvar="PERDURE_STORE", default=DEFAULT_STORE, show_default=True,
        help="Where runs are kept: sqlite:///file.db (also PERDURE_STORE).",
    )(command)  # fmt: skip


def json_option(command: F) -> F:
    """`--json`: one JSON document on stdout, also for errors."""
    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=_remember_json,
        help="Print one JSON document.",
    )(command)  # fmt: skip
