"""Runs that wait, as people at the command line meet them: in one process, then in several."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.stores.sqlite.driver import has_wal_reset_bug
from tests.cli.commands import SLOW, chain, perdure, run, start, task, wait_for_call, write

pytestmark = pytest.mark.usefixtures("folder")
together = pytest.mark.skipif(
    has_wal_reset_bug(), reason="this SQLite lets one process in at a time"
)

ANN = ("--input", '{"name": "Ann"}', "--id", "ann")


def review(**spec: Any) -> dict[str, Any]:
    """greet, then wait for the signal `approved`, then shout what it said."""
    return chain(
        "review",
        task("greet", "greet", {"name": "{{input.name}}"}),
        {"id": "ok", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "approved", **spec}},
        task("shout", "shout", {"text": "{{tasks.ok.output.by}}"}),
        output={"said": "{{tasks.shout.output}}"},
    )


@pytest.fixture(autouse=True)
def _document(folder: Path) -> None:
    (folder / "review.json").write_text(json.dumps(review()), encoding="utf-8")


def left_waiting() -> None:
    """A run that came to its wait in a process that is gone."""
    result = run("review.json", *ANN, "--timeout", "1", code=4)
    assert "ok     waits for signal approved (perdure signal review/ann approved)" in result.stderr


def why(name: str = "review/ann") -> Any:
    return json.loads(perdure("why", name, "--json").stdout)


def test_a_run_that_waits_says_how_it_is_told_and_goes_on_in_the_next_process() -> None:
    left_waiting()
    sent = perdure("signal", "review/ann", "approved", '{"by": "bob"}')
    assert sent.stderr == "signal approved is sent to review/ann\n"
    assert run("review.json", "--id", "ann").stdout == '{"said": "BOB"}\n'


def test_a_signal_that_comes_before_the_run_waits_is_kept() -> None:
    perdure("start", "review.json", *ANN)
    document = perdure("signal", "review/ann", "approved", '{"by": "bob"}', "--json").stdout
    assert json.loads(document) == {
        "workflow": "review", "id": "ann", "signal": "approved", "checked": False,
    }  # fmt: skip
    assert run("review.json", "--id", "ann").stdout == '{"said": "BOB"}\n'


def test_a_signal_that_nothing_waits_for_says_what_is_waited_for() -> None:
    left_waiting()
    assert perdure("signal", "review/ann", "aproved").stderr.splitlines() == [
        "signal aproved is sent to review/ann",
        "no node has waited for it yet: it is kept; what is waited for: approved",
    ]


def test_a_signal_is_sent_from_a_file_and_counts_once_with_a_key() -> None:
    perdure("start", "review.json", *ANN)
    write("by.json", {"by": "bob"})
    words = ("signal", "review/ann", "approved")
    perdure(*words, "@by.json", "--dedupe-key", "k1")
    perdure(*words, '{"by": "eve"}', "--dedupe-key", "k1")
    assert why()["unread"] == 1
    assert run("review.json", "--id", "ann").stdout == '{"said": "BOB"}\n'


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("signal", "review/none", "approved"), 3, "review/none"),
        (("signal", "review/ann", ""), 2, "1 to 256 characters"),
        (("signal", "review/ann", "approved", "{"), 2, "the value is not JSON"),
        (("signal", "review/ann"), 2, "NAME"),
        (("cancel", "review/none"), 3, "review/none"),
        (("pause", "review/none"), 3, "review/none"),
        (("unpause", "review/none"), 3, "review/none"),
        (("retry", "review/none"), 3, "none"),
        (("retry", "review/ann"), 2, "has not ended"),
        (("retry", "review/ann", "--from", "ok", "--failed"), 2, "not both"),
        (("watch", "review/none"), 3, "none"),
        (("why", "review/none"), 3, "none"),
    ],
)
def test_what_cannot_be_sent_is_told_and_changes_nothing(
    words: tuple[str, ...], code: int, part: str
) -> None:
    perdure("start", "review.json", *ANN)
    assert part in perdure(*words, code=code).stderr
    assert why()["unread"] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("signal", "a/b", "x"), ("cancel", "a/b"), ("pause", "a/b"), ("unpause", "a/b"),
        ("retry", "a/b"), ("watch", "a/b"), ("why", "a/b"), ("db", "status"), ("db", "purge"),
    ],
)  # fmt: skip
def test_no_command_makes_a_database_where_none_is(words: tuple[str, ...]) -> None:
    assert "there is no database" in perdure(*words, code=5).stderr
    assert not Path("perdure.db").exists()


@pytest.mark.rule("D-25")
def test_a_signal_to_an_ended_run_is_not_found_and_a_cancel_of_one_is_no_error() -> None:
    run("greeting.json", *ANN)
    assert perdure("signal", "greeting/ann", "x", code=3).stderr == (
        "perdure: greeting/ann has ended: nothing was sent; perdure show greeting/ann shows how\n"
    )
    assert perdure("cancel", "greeting/ann").stderr == "greeting/ann has ended (completed)\n"
    assert "has ended" in perdure("pause", "greeting/ann", code=2).stderr


@pytest.mark.rule("D-39")
def test_a_canceled_run_ends_with_its_reason_and_goes_on_when_retried() -> None:
    left_waiting()
    asked = perdure("cancel", "review/ann", "--reason", "not wanted")
    assert asked.stderr == "cancel is asked of review/ann; whoever works on it reads it\n"
    result = run("review.json", "--id", "ann", code=1)
    assert "perdure: review/ann was canceled" in result.stderr
    assert "not wanted" in perdure("why", "review/ann").stdout
    again = json.loads(perdure("retry", "review/ann", "--json").stdout)
    assert (again["id"], again["status"]) == ("ann", "running")
    perdure("signal", "review/ann", "approved", '{"by": "bob"}')
    assert run("review.json", "--id", "ann").stdout == '{"said": "BOB"}\n'


def test_a_run_is_done_again_from_a_node_with_another_input() -> None:
    run("greeting.json", *ANN)
    perdure("retry", "greeting/ann", "--from", "greet", "--input", '{"name": "Eve"}')
    assert run("greeting.json", "--id", "ann").stdout == '{"said": "HELLO, EVE"}\n'


def test_a_paused_run_starts_nothing_until_it_is_unpaused() -> None:
    perdure("start", "greeting.json", *ANN)
    perdure("pause", "greeting/ann")
    run("greeting.json", "--id", "ann", "--timeout", "1", code=4)
    said = perdure("why", "greeting/ann").stdout
    assert "it is paused, for " in said
    assert "  -> perdure unpause greeting/ann" in said
    assert not Path("calls.log").exists()
    perdure("unpause", "greeting/ann")
    assert run("greeting.json", "--id", "ann").stdout == '{"said": "HELLO, ANN"}\n'


def test_a_wait_that_is_over_fails_and_says_so() -> None:
    write("review.json", review(timeout="0.2s"))
    result = run("review.json", *ANN, code=1)
    assert "waits for signal approved until " in result.stderr
    assert "node ok: workflow.timeout: timed out waiting for signal" in result.stderr
    assert "perdure retry review/ann && perdure run review.json --id ann" in result.stderr


def test_show_and_why_tell_what_a_run_waits_for() -> None:
    left_waiting()
    assert "waits for signal approved" in perdure("show", "review/ann").stdout
    said = perdure("why", "review/ann").stdout.splitlines()
    assert said[0].startswith("review/ann has run for ")
    assert said[1].startswith("ok  waits for signal approved, for ")
    assert said[2] == "      -> perdure signal review/ann approved"
    (cause,) = why()["waits_for"]
    assert (cause["kind"], cause["node"]) == ("signal", "ok")


def test_why_of_a_run_that_nobody_works_on_asks_for_a_worker() -> None:
    perdure("start", "review.json", *ANN)
    document = why()
    assert document["waits_for"][-1]["kind"] == "worker"
    assert document["held_by"] is None
    assert "no worker has taken it" in perdure("why", "review/ann").stdout


@together
@pytest.mark.slow
@pytest.mark.chaos
def test_why_names_the_worker_that_holds_a_run_and_says_when_it_is_gone() -> None:
    write("slow.json", SLOW)
    worker = start("worker", "slow.json", "steps.py", "--name", "w1")
    perdure("start", "slow.json", *ANN)
    wait_for_call("wait 1", worker)
    holder = why("slow/ann")["held_by"]
    assert (holder["name"], holder["pid"], holder["alive"]) == ("w1", worker.pid, True)
    said = perdure("why", "slow/ann").stdout
    assert f"held by worker w1 (process {worker.pid} on " in said
    assert "wait  attempt 1 is under way for " in said
    worker.kill()
    worker.communicate()
    assert why("slow/ann")["held_by"]["alive"] is False
    assert ", which is gone: the next one takes it over" in perdure("why", "slow/ann").stdout


def test_why_of_an_ended_run_says_that_it_waits_for_nothing() -> None:
    run("greeting.json", *ANN)
    assert "it waits for nothing" in perdure("why", "greeting/ann").stdout
    assert why("greeting/ann")["waits_for"] == []


# ------------------------------------------------------------------ several processes


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out, err


def hear(process: subprocess.Popen[str], part: str) -> str:
    """Read its stderr up to a line that holds this."""
    assert process.stderr is not None
    heard = []
    for line in process.stderr:
        heard.append(line)
        if part in line:
            return line
    raise AssertionError(f"{part!r} was not said: {heard}")


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@together
@pytest.mark.slow
def test_a_worker_takes_what_is_started_and_hears_signals_from_other_processes() -> None:
    worker = start("worker", "review.json", "steps.py", "--name", "w1")
    hear(worker, "serves review on sqlite:///perdure.db")
    said = perdure("start", "review.json", *ANN).stderr
    assert "1 worker is alive: one that serves review takes it; to follow it: perdure watch" in said
    hear(worker, "review/ann begins")
    hear(worker, "review/ann waits at ok for signal approved")
    watching = start("watch", "review/ann")
    hear(watching, "ok     waits for signal approved")
    perdure("signal", "review/ann", "approved", '{"by": "bob"}')
    code, out, err = ended(watching)
    assert (code, out) == (0, '{"said": "BOB"}\n')
    assert "ok     got signal approved" in err
    assert "shout  completed" in err
    hear(worker, "review/ann completed")
    worker.send_signal(signal.SIGTERM)
    code, out, err = ended(worker)
    assert (code, out) == (0, "")
    assert "stopped" in err


@together
@pytest.mark.slow
def test_a_run_that_one_process_waits_in_is_signalled_by_another() -> None:
    process = start("run", "review.json", "--app", "steps.py", *ANN)
    hear(process, "waits for signal approved (perdure signal review/ann approved)")
    perdure("signal", "review/ann", "approved", '{"by": "bob"}')
    assert ended(process)[:2] == (0, '{"said": "BOB"}\n')


@together
@pytest.mark.slow
@pytest.mark.chaos
def test_a_process_that_is_stopped_while_its_run_waits_says_how_to_go_on() -> None:
    process = start("run", "review.json", "--app", "steps.py", *ANN)
    hear(process, "waits for signal approved")
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "  perdure run review.json --id ann --app steps.py"


@together
@pytest.mark.slow
@pytest.mark.chaos
def test_a_worker_takes_over_from_one_that_was_killed() -> None:
    first = start("worker", "review.json", "steps.py")
    hear(first, "serves review")
    perdure("start", "review.json", *ANN)
    hear(first, "waits at ok")
    second = start("worker", "review.json", "steps.py")
    hear(second, "serves review")
    first.kill()
    first.communicate()
    perdure("signal", "review/ann", "approved", '{"by": "bob"}')
    assert ended(start("result", "review/ann", "--wait"))[:2] == (0, '{"said": "BOB"}\n')
    second.send_signal(signal.SIGINT)
    assert ended(second)[0] == 0


@together
@pytest.mark.slow
def test_a_quiet_worker_tells_only_what_goes_wrong() -> None:
    write("bad.json", chain("bad", task("refuse", "refuse", {"text": "x"})))
    worker = start("worker", "bad.json", "greeting.json", "steps.py", "--quiet")
    perdure("start", "greeting.json", *ANN)
    perdure("start", "bad.json", "--id", "b")
    line = hear(worker, "bad/b failed")
    assert "unlucky: " in line
    until(lambda: "completed" in perdure("list", "--workflow", "greeting").stdout, "never done")
    worker.send_signal(signal.SIGTERM)
    code, _, err = ended(worker)
    assert code == 0
    assert "greeting/ann" not in err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("worker",), "such as perdure worker order.yaml steps.py"),
        (("worker", "steps.py"), "there is nothing to serve"),
        (("worker", "review.json"), "with perdure worker review.json steps.py or"),
        (("worker", "none.json"), "none.json"),
        (("worker", "review.json", "steps.py", "--store", "memory:"), "one process"),
    ],
)
def test_a_worker_that_could_do_nothing_is_refused(words: tuple[str, ...], part: str) -> None:
    assert part in perdure(*words, code=2).stderr
    assert not Path("perdure.db").exists()


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_watch_of_a_run_that_does_not_end_in_time_ends_with_4(words: tuple[str, ...]) -> None:
    left_waiting()
    result = perdure("watch", "review/ann", "--timeout", "0.1", *words, code=4)
    assert "review/ann goes on from ok: 1 node is recorded" in result.stderr
    assert "ok     waits for signal approved" in result.stderr
    assert (json.loads(result.stdout)["output"] is None) if words else result.stdout == ""


def test_watch_of_a_run_that_has_ended_is_its_result() -> None:
    run("greeting.json", *ANN)
    assert perdure("watch", "greeting/ann").stdout == '{"said": "HELLO, ANN"}\n'
    write("bad.json", chain("bad", task("refuse", "refuse", {"text": "x"})))
    run("bad.json", "--id", "b", code=1)
    assert "node refuse, attempt 2: unlucky" in perdure("watch", "bad/b", code=1).stderr


def test_a_retry_of_a_paused_run_says_that_it_stays_paused() -> None:
    perdure("start", "review.json", *ANN)
    perdure("pause", "review/ann")
    left_paused = run("review.json", "--id", "ann", "--timeout", "1", code=4)
    assert "paused" in left_paused.stderr
    perdure("cancel", "review/ann")
    run("review.json", "--id", "ann", code=1)
    told = perdure("retry", "review/ann").stderr
    assert "it was paused, and stays so" in told
    assert "perdure unpause review/ann" in told
