"""The synchronous client where processes begin, fork and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from perdure import Context, PerdureError, workflow
from perdure.blocking import Client, Engine
from perdure.feed import RunStarted


@workflow(max_duration="1h")
async def quiet(ctx: Context, n: int) -> int:
    return n


def in_child(case: Callable[[], None]) -> None:
    """The case in a forked child; its failure is ours."""
    with warnings.catch_warnings():
        # Forking beside threads is what is tested; newer Pythons warn of it.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        status = 1
        try:
            case()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def ids(client: Client) -> list[str]:
    return sorted(info.id for info in client.runs())


def program(folder: Path, text: str) -> subprocess.Popen[str]:
    """A Python program that shares this one's code."""
    path = folder / "program.py"
    head = """\
        import sys
        from perdure import Context, workflow
        from perdure.blocking import Client, Engine

        @workflow(max_duration="1h")
        async def waits(ctx: Context) -> None:
            await ctx.sleep("1h")

        @workflow(max_duration="1h")
        async def quiet(ctx: Context, n: int) -> int:
            return n
    """
    path.write_text(textwrap.dedent(head) + textwrap.dedent(text), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_client_made_before_the_fork_works_in_every_child(tmp_path: Path) -> None:
    client = Client(f"sqlite:///{tmp_path}/runs.db")

    def case(n: int) -> None:
        assert client.start(quiet, n, id=f"child-{n}").status() == "running"

    for n in range(3):
        in_child(partial(case, n))
    assert ids(client) == ["child-0", "child-1", "child-2"]
    client.close()


def test_whoever_listens_to_a_client_hears_of_its_calls_in_a_child(tmp_path: Path) -> None:
    client = Client(f"sqlite:///{tmp_path}/runs.db")
    heard: list[str] = []

    @client.listen(RunStarted)
    def hear(event: RunStarted) -> None:
        heard.append(event.run_id)

    def case(id: str) -> None:
        client.start(quiet, 0, id=id)
        client.close()
        assert heard == [id], "what the parent started is the parent's to hear"

    in_child(partial(case, "child"))
    case("parent")


@pytest.mark.rule("W-27")
def test_a_client_that_was_used_before_the_fork_works_on_both_sides(tmp_path: Path) -> None:
    with Client(f"sqlite:///{tmp_path}/runs.db") as client:
        run = client.start(quiet, 0, id="parent")

        def grandchild() -> None:
            assert ids(client) == ["child", "parent"]

        def child() -> None:
            assert run.status() == "running"
            client.start(quiet, 1, id="child")
            in_child(grandchild)

        in_child(child)
        client.start(quiet, 2, id="again")
        assert ids(client) == ["again", "child", "parent"]


def test_what_belongs_to_the_parent_is_refused_in_the_child(tmp_path: Path) -> None:
    with Client("memory:") as client, Engine(f"sqlite:///{tmp_path}/runs.db", [quiet]) as engine:
        client.start(quiet, 1, id="1")
        engine.run(quiet, 1)

        def case() -> None:
            with pytest.raises(PerdureError, match="of which this is a child: make the client"):
                client.get(quiet, "1").status()
            with pytest.raises(PerdureError, match="of which this is a child: open one here"):
                engine.run(quiet, 2)
            with Engine(f"sqlite:///{tmp_path}/other.db", [quiet]) as other:
                assert other.run(quiet, 3) == 3

        in_child(case)
        assert client.get(quiet, "1").status() == "running"
        assert engine.run(quiet, 4) == 4


@pytest.mark.slow
def test_an_interrupt_ends_the_wait_and_not_the_run(tmp_path: Path) -> None:
    process = program(
        tmp_path,
        """
        with Engine("sqlite:///runs.db", [waits]) as engine:
            run = engine.start(waits, id="1")
            print("waiting", flush=True)
            try:
                run.result()
            except KeyboardInterrupt:
                print(run.status(), flush=True)
        """,
    )
    assert line_of(process) == "waiting"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert line_of(process) == "running"
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_works_until_it_is_told_to_stop(tmp_path: Path, number: int) -> None:
    process = program(
        tmp_path,
        """
        import signal
        before = signal.getsignal(signal.SIGTERM)
        with Engine("sqlite:///runs.db", [waits], grace=1) as engine:
            engine.start(waits, id="1")
            print("serving", flush=True)
            engine.serve()
            print(signal.getsignal(signal.SIGTERM) == before, flush=True)
        """,
    )
    assert line_of(process) == "serving"
    time.sleep(0.2)
    process.send_signal(number)
    assert line_of(process) == "True"
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0


def test_a_process_ends_in_peace_whatever_is_left_open(tmp_path: Path) -> None:
    process = program(
        tmp_path,
        """
        client = Client("sqlite:///runs.db")
        client.start(quiet, 1, id="1")
        engine = Engine("sqlite:///runs.db?unsafe=1", [quiet]).__enter__()
        print(engine.get(quiet, "1").result(timeout=20))
        """,
    )
    said, complaints = process.communicate(timeout=30)
    assert (said, complaints, process.returncode) == ("1\n", "", 0)
