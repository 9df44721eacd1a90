"""`perdure draw`: a document, a published workflow or a run as a drawing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from perdure.cli.exits import NOT_FOUND, Trouble, usage
from perdure.cli.options import DrawableType, json_option, store_option
from perdure.cli.output import print_json
from perdure.cli.say import say
from perdure.cli.stores import existing

if TYPE_CHECKING:
    from perdure.graph.definition import Graph
    from perdure.saga.builder import Saga

    Drawn = Graph | Saga[Any]

History = Iterable[Mapping[str, Any]] | None

FORMATS: Final = ("mermaid", "svg")
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".html")


@click.command(short_help="Draw a document, or how a run went.")
@click.argument("what", metavar="FILE|WORKFLOW|WORKFLOW/ID", type=DrawableType())
@click.option("--format", "-f", "form", type=click.Choice(FORMATS),
              help="Default: what the name of the --output says, else mermaid.")  # fmt: skip
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
@store_option
@json_option
def draw(what: str, form: str | None, output: str | None, store: str, as_json: bool) -> None:
    """Draw a document, a saga, the current version of a published WORKFLOW, or a run: which nodes
    have run, how each one stands, and which way it went."""
    form = form or ("mermaid" if output is None else _form_of(output))
    graph, history = _found(what, store)
    drawing = graph.svg(history) if form == "svg" else graph.mermaid(history)
    if output is not None:
        _write(output, drawing)
    if as_json:
        told = {"workflow": graph.name, "version": graph.version, "format": form}
        print_json(told | ({"drawing": drawing} if output is None else {"file": output}))
    elif output is None:
        say(drawing, nl=False)
    else:
        say(f"{output} is written", err=True)


def _found(what: str, store: str) -> tuple[Drawn, History]:
    """What is to be drawn. A file goes before a run of the same name."""
    from perdure.cli.target import DOCUMENTS, document, is_code
    from perdure.graph.definition import Graph

    if what == "-":
        from perdure.graph.read import MAX_BYTES
        from perdure.graph.source import format_of

        text = sys.stdin.buffer.read(MAX_BYTES + 1)
        return Graph.load(text, format=format_of(what, text)), None
    if is_code(what):
        return _coded(what), None
    if Path(what).is_file() or what.lower().endswith(DOCUMENTS):
        return document(what), None
    import asyncio

    try:
        return asyncio.run(_stored(what, existing(store)))
    except Trouble as trouble:
        raise Trouble(
            f"there is no file {what}, and {trouble.message}", trouble.exit_code, trouble.code
        ) from None


async def _stored(what: str, store: str) -> tuple[Drawn, History]:
    from perdure.client.client import Client
    from perdure.client.urls import store_of
    from perdure.drivers.native import rebuild
    from perdure.model.errors import NotFound

    workflow, slash, id = what.partition("/")
    history: History = None
    async with Client(store_of(store, read_only=True)) as client:
        try:
            if slash:
                run = client.get(workflow, id)
                row = await run._row()
                stored = await client._store.definition(row.hash)
                history = [record async for record in run.history()]
            else:
                stored = await client._store.latest_definition(workflow)
        except NotFound as error:
            raise Trouble(str(error), NOT_FOUND, "not-found") from None
    if not stored.source:
        advice = f"perdure show {what} tells" if slash else "perdure show WORKFLOW/ID tells"
        raise usage(
            f"{workflow} is code: documents and sagas are drawn; {advice} what a run has called"
        )
    return cast("Drawn", rebuild(stored)), history


def _coded(what: str) -> Drawn:
    """A saga of a Python file. Raises Trouble for what is none."""
    from perdure.cli.target import find_target

    found = find_target(what, ()).definition
    if not found.source:
        raise usage(f"{what}: {found.name} is code; documents and sagas are drawn")
    return cast("Drawn", found)


def _form_of(file: str) -> str:
    """The format that a file's name says. Raises Trouble for one of another kind of picture."""
    suffix = Path(file).suffix.lower()
    if suffix in _PICTURES:
        raise usage(
            f"{file}: drawings are SVG or Mermaid, not {suffix[1:].upper()}: write "
            f"{Path(file).with_suffix('.svg')}, and let a browser or rsvg-convert make the rest"
        )
    return "svg" if suffix == ".svg" else "mermaid"


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise usage(f"{file} cannot be written: {error.strerror}") from None
