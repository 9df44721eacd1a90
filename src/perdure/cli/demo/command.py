"""`perdure demo`: an order whose workers are killed, and an account of what happened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perdure.cli.exits import OK, RUN_FAILED, Trouble, usage
from perdure.cli.options import json_option
from perdure.cli.output import print_json

if TYPE_CHECKING:
    from perdure.cli.demo.account import Kill
    from perdure.cli.demo.play import Outcome
    from perdure.cli.demo.story import Teller


@click.command()
@click.option("--seed", type=click.IntRange(0), help="Draw the moments of an earlier demo again.")
@click.option("--keep", is_flag=True, help="Leave its files there, to look into.")
@json_option
def demo(seed: int | None, keep: bool, as_json: bool) -> None:
    """Show a workflow survive kills (half a minute).

    A small shop on this machine, an order that goes through it, a person who approves it, workers
    that are killed on the way (kill -9), a trip that is undone, and an account of what was done,
    and how often. Exits with 1 if anything promised did not hold.
    """
    import secrets
    import shutil
    import sys
    import tempfile

    from perdure.cli.demo.page import page_for
    from perdure.cli.demo.stopping import PROCESSES
    from perdure.cli.demo.story import Teller
    from perdure.engine.handlers.http import HttpHandler

    if not HttpHandler.available():
        raise usage("the demo calls an HTTP service: pip install 'perdure[all]'")
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    stream = sys.stderr if as_json else sys.stdout
    tell = Teller(page_for(stream), reader=stream.isatty() and not as_json)
    PROCESSES.stop_once()
    folder, kept = Path(tempfile.mkdtemp(prefix="perdure-demo-")), keep
    try:
        outcome = _play(tell, folder, seed)
        kept = keep or not outcome.held
    except BrokenPipeError:
        raise  # nobody is left to be told where the files are
    except Exception:
        kept = True
        tell.say(f"Its files are in {folder}; --seed {seed} draws the same moments again.")
        raise
    finally:
        PROCESSES.end_all()
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    _close(tell, outcome, folder if kept else None, seed)
    if as_json:
        print_json(_json(outcome, folder if kept else None, seed))
    click.get_current_context().exit(OK if outcome.held else RUN_FAILED)


def _play(tell: Teller, folder: Path, seed: int) -> Outcome:
    import shutil

    from perdure.cli.demo.play import Play
    from perdure.cli.demo.rollback import FILE
    from perdure.cli.demo.stage import FILES
    from perdure.graph.definition import Graph

    for name in (*FILES, FILE):
        shutil.copy(_example(name), folder / name)
    types = {n.id: n.type for n in Graph.read(str(folder / "order.json")).plan.nodes.values()}
    tell.say("perdure: workflows that outlive the process they run in", "bold")
    tell.say()
    tell.say("A program that is in the middle of something can die at any moment: a crash, a "
             "deployment, a power cut. Here workers die on purpose, three of them while an order "
             "goes through these steps, and one more while a trip is undone:")  # fmt: skip
    tell.say()
    tell.plan(types)
    return Play(tell, folder, _store(tell, folder), seed, types).run()


def _example(name: str) -> Path:
    """A file of the example, beside this one when installed, else in the repository."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "order", here.parents[4] / "examples" / "order"):
        if (folder / name).exists():
            return folder / name
    raise Trouble(f"the demo's {name} is missing from this installation", RUN_FAILED, "demo")


def _store(tell: Teller, folder: Path) -> str:
    """The URL of the demo's database, which several processes are to share."""
    from urllib.parse import quote

    from perdure.stores.sqlite.driver import has_wal_reset_bug

    url = f"sqlite:///{quote(str(folder / 'perdure.db'))}"
    if not has_wal_reset_bug():
        return url
    tell.say()
    tell.say("(The SQLite library here may lose commits, very seldom, when several processes write "
             "to one file. The demo takes that risk; for real work: "
             "pip install 'perdure[sqlite-latest]')", "dim")  # fmt: skip
    return f"{url}?unsafe=1"


def _close(tell: Teller, outcome: Outcome, folder: Path | None, seed: int) -> None:
    import shlex

    from perdure.cli.demo.play import ORDER
    from perdure.cli.demo.stage import command

    tell.close("The account: what the journal says, and what others saw")
    tell.account(outcome.found)
    tell.say()
    tell.reversal(outcome.rollback.steps)
    tell.say()
    for check in (*outcome.checks, *outcome.rollback.checks):
        tell.check(check)
    tell.say()
    if folder is None:
        again = f"`perdure demo --seed {seed} --keep`"
        tell.say(f"Nothing is left of it; {again} draws the same moments and keeps the files.")
        return
    tell.say(f"Its files are kept; the seed was {seed}. Look for yourself:")
    tell.try_it(f"cd {shlex.quote(str(folder))} && {command()} show {ORDER} --history")


def _json(outcome: Outcome, folder: Path | None, seed: int) -> dict[str, Any]:
    import msgspec

    return {
        "seed": seed,
        "folder": None if folder is None else str(folder),
        "kills": [_kill(kill) for kill in outcome.kills],
        "nodes": [
            {
                "node": a.node,
                "recorded_by": a.by or None,
                "asked": a.asked,
                "busy": a.busy,
                "did": a.did,
                "journal": a.journal,
            }
            for a in outcome.found
        ],
        "output": outcome.output,
        "rollback": {
            "kill": _kill(outcome.rollback.kill),
            "steps": [msgspec.to_builtins(step) for step in outcome.rollback.steps],
        },
        "checks": [
            {"promise": check.promise, "held": check.held}
            for check in (*outcome.checks, *outcome.rollback.checks)
        ],
        "held": outcome.held,
    }


def _kill(kill: Kill) -> dict[str, Any]:
    return {
        "worker": kill.worker,
        "pid": kill.pid,
        "under_way": kill.under_way,
        "taken_by": kill.taker or None,
        "after": None if kill.after is None else round(kill.after, 3),
    }
