"""`export` and `import`: runs leave one store whole and come into another whole, or not at all."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import BAD, calls, chain, perdure, run, start, task, write

pytestmark = pytest.mark.usefixtures("folder")

NAMED = ("--input", '{"name": "Ann"}', "--id")
THERE = ("--store", "sqlite:///other.db")
WAITS = chain(
    "waits",
    {"id": "go", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go", "timeout": "1h"}},
    task("greet", "greet", {"name": "x"}),
)


def told(*words: str) -> Any:
    return json.loads(perdure(*words, "--json").stdout)


def whole(name: str, *store: str) -> Any:
    """Everything that is shown of a run, and its mail."""
    return told("show", name, "--history", *store)


@pytest.fixture
def moved(folder: Any) -> None:
    """greeting/done and bad/b, in this store and in the other one."""
    write("bad.json", BAD)
    run("greeting.json", *NAMED, "done")
    run("bad.json", "--id", "b", "--input", json.dumps("y" * 9000), code=1)
    perdure("export", "greeting/done", "bad/b", "-o", "runs.jsonl")
    perdure("import", "runs.jsonl", *THERE)


@pytest.mark.usefixtures("moved")
def test_what_is_imported_is_what_was_exported() -> None:
    for name in ("greeting/done", "bad/b"):
        assert whole(name, *THERE) == whole(name)
    assert perdure("result", "greeting/done", *THERE).stdout == '{"said": "HELLO, ANN"}\n'
    perdure("result", "bad/b", *THERE, code=1)
    perdure("export", "greeting/done", "bad/b", "-o", "again.jsonl", *THERE)
    lines = [Path(file).read_text().splitlines()[1:] for file in ("runs.jsonl", "again.jsonl")]
    known = [[line for line in told_ if '"definition":{' not in line[:14]] for told_ in lines]
    assert known[0][:-1] == known[1][:-1]


@pytest.mark.usefixtures("moved")
def test_an_imported_run_can_be_retried() -> None:
    perdure("retry", "bad/b", *THERE)
    before = len(calls())
    run("bad.json", "--id", "b", *THERE, code=1)
    assert len(calls()) > before
    assert told("show", "bad/b")["nodes"][1]["attempt"] == 2


@pytest.mark.usefixtures("moved")
def test_the_definition_comes_with_its_run_and_is_not_made_current() -> None:
    write("greeting.json", {**json.loads(Path("greeting.json").read_text()), "version": "2"})
    store = ("--store", "sqlite:///third.db")
    perdure("publish", "greeting.json", *store)
    perdure("import", "runs.jsonl", *store)
    found = told("definitions", "greeting", *store)["definitions"]
    assert [(one["version"] == "2", one["ended"]) for one in found] == [(True, 0), (False, 1)]


def test_a_run_that_goes_on_is_exported_only_when_that_is_meant() -> None:
    run("greeting.json", *NAMED, "done")
    perdure("start", "greeting.json", *NAMED, "on")
    refused = perdure("export", "greeting/done", "greeting/on", "-o", "runs.jsonl", code=2)
    assert "greeting/on has not ended" in refused.stderr
    assert not list(Path().glob("runs.jsonl*"))
    said = perdure("export", "--where", "workflow=greeting", "-o", "runs.jsonl").stderr
    assert said.startswith("1 run written to runs.jsonl")
    more = ("--where", "workflow=greeting", "--running", "--force")
    assert told("export", *more, "-o", "runs.jsonl")["runs"] == 2


def test_an_imported_run_that_goes_on_is_paused_and_nobody_takes_it_until_it_is_unpaused() -> None:
    write("waits.json", WAITS)
    perdure("start", "waits.json", "--id", "w")
    perdure("signal", "waits/w", "go", "1")
    perdure("export", "waits/w", "--running", "-o", "runs.jsonl")
    said = perdure("import", "runs.jsonl", *THERE).stderr
    unpause = "perdure unpause waits/w --store sqlite:///other.db"
    assert f"waits/w had not ended and is paused; to go on here: {unpause}" in said
    run("waits.json", "--id", "another", *THERE, "--timeout", "0.2", "--grace", "0", code=4)
    assert calls() == []
    assert told("show", "waits/w", *THERE)["nodes"][0]["status"] == "waiting"
    why = perdure("why", "waits/w", *THERE).stdout
    assert "it is paused" in why
    assert unpause in why
    perdure("unpause", "waits/w", *THERE)
    run("waits.json", "--id", "w", *THERE)
    assert calls() == ["greet 1"]
    assert told("show", "waits/w")["nodes"][0]["status"] == "waiting"


def test_what_wakes_an_imported_run_finds_it_paused() -> None:
    write("waits.json", WAITS)
    perdure("start", "waits.json", "--id", "w")
    perdure("export", "waits/w", "--running", "-o", "runs.jsonl")
    perdure("import", "runs.jsonl", *THERE)
    perdure("signal", "waits/w", "go", "1", *THERE)
    words = ("--id", "w", *THERE, "--timeout", "0.5", "--grace", "0")
    run("waits.json", *words, code=4)
    assert calls() == []
    assert told("why", "waits/w", *THERE)["paused"] is not None


@pytest.mark.usefixtures("moved")
def test_what_is_there_already_refuses_the_file_or_is_left_out() -> None:
    run("greeting.json", *NAMED, "more")
    perdure("export", "greeting/more", "greeting/done", "-o", "more.jsonl")
    before = whole("greeting/done", *THERE)
    refused = perdure("import", "more.jsonl", *THERE, code=2).stderr
    assert "greeting/done is in this store already: nothing was imported" in refused
    assert len(told("list", *THERE)["runs"]) == 2
    foreseen = told("import", "more.jsonl", "--skip-existing", "--dry-run", *THERE)["runs"]
    assert len(told("list", *THERE)["runs"]) == 2
    document = told("import", "more.jsonl", "--skip-existing", *THERE)["runs"]
    assert document == foreseen
    assert {one["id"]: one["outcome"] for one in document} == {"done": "exists", "more": "imported"}
    assert whole("greeting/done", *THERE) == before


@pytest.mark.usefixtures("moved")
def test_a_file_that_is_cut_off_or_changed_anywhere_is_refused_whole() -> None:
    data = Path("runs.jsonl").read_bytes()
    store = ("--store", "sqlite:///third.db")
    bad = Path("bad.jsonl")
    lines = data.splitlines(keepends=True)
    for n in range(len(lines)):
        bad.write_bytes(b"".join(lines[:n]))
        assert "nothing of it was imported" in perdure("import", "bad.jsonl", *store, code=2).stderr
        bad.write_bytes(b"".join(lines[:n] + lines[n + 1 :]))
        perdure("import", "bad.jsonl", *store, code=2)
        changed = lines[n].replace(b"e", b"E", 1) if n else lines[n].replace(b"by", b"bY")
        bad.write_bytes(b"".join([*lines[:n], changed, *lines[n + 1 :]]))
        perdure("import", "bad.jsonl", *store, code=2)
    bad.write_bytes(data + b"{}\n")
    assert "more after its last line" in perdure("import", "bad.jsonl", *store, code=2).stderr
    bad.write_bytes(data[:-20])
    assert "cut off" in perdure("import", "bad.jsonl", *store, code=2).stderr
    assert not Path("third.db").exists()


def sealed(lines: list[dict[str, Any]]) -> bytes:
    """An export file of these lines, with checksums that are right."""
    whole, run, runs = b"", sha256(), 0
    for line in lines:
        if "run" in line:
            run, runs = sha256(), runs + 1
        if "end" in line:
            line["end"]["sha256"] = run.hexdigest()
        if "done" in line:
            line["done"] = {"runs": runs, "sha256": sha256(whole).hexdigest()}
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        run.update(text)
        whole += text
    return whole


@pytest.mark.usefixtures("moved")
@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("run", "created", 2**70), ("run", "created", -1), ("run", "finished", 2**62),
        ("run", "deadline", 2**63), ("run", "epoch", 2**64), ("run", "crashes", -1),
        ("run", "not_before", 2**64), ("run", "metadata", []), ("run", "failure", {"x": 1}),
        ("run", "finished", None), ("run", "key", "zz"), ("row", "at", 2**64),
        ("row", "commit", 2**64), ("row", "read", -1), ("definition", "created", 2**66),
        ("definition", "name", "\x1b[31m"), ("head", "format", 2**70),
    ],
)  # fmt: skip
def test_a_file_that_was_changed_with_care_is_refused_whole(
    part: str, field: str, value: Any
) -> None:
    """Its checksums are right; what it says no store could keep, or no command show."""
    lines = [json.loads(line) for line in Path("runs.jsonl").read_text("utf-8").splitlines()]
    Path("bad.jsonl").write_bytes(sealed(lines))
    told("import", "bad.jsonl", "--dry-run", "--store", "sqlite:///third.db")
    # The last one of its kind: what comes before it is not let in either.
    line = next(one for one in reversed(lines) if part in one or (part == "head" and "by" in one))
    (line if part == "head" else line[part])[field] = value
    Path("bad.jsonl").write_bytes(sealed(lines))
    perdure("import", "bad.jsonl", "--store", "sqlite:///third.db", code=2)
    assert told("list", "--store", "sqlite:///third.db")["runs"] == []


@pytest.mark.usefixtures("moved")
def test_two_runs_of_a_file_do_not_share_a_key() -> None:
    lines = [json.loads(line) for line in Path("runs.jsonl").read_text("utf-8").splitlines()]
    runs = [line["run"] for line in lines if "run" in line]
    assert len(runs) > 1
    runs[-1]["key"] = runs[0]["key"]
    Path("bad.jsonl").write_bytes(sealed(lines))
    assert "share a key" in perdure("import", "bad.jsonl", *THERE, code=2).stderr


def test_a_newer_format_and_other_files_are_refused() -> None:
    for text, said in (
        ('{"perdure":"export","format":2}\n', "upgrade perdure"),
        ('{"name": "order"}\n', "no file that perdure export wrote"),
        ("", "no file that perdure export wrote"),
        ("\x00\n", "no file that perdure export wrote"),
    ):
        Path("x.jsonl").write_text(text, encoding="utf-8")
        assert said in perdure("import", "x.jsonl", code=2).stderr
    assert "cannot be read" in perdure("import", "none.jsonl", code=2).stderr
    assert not Path("perdure.db").exists()


@pytest.mark.usefixtures("moved")
def test_a_pipe_carries_runs_too() -> None:
    lines = perdure("export", "greeting/done").stdout
    document = json.loads(perdure("import", "-", "--store", "sqlite:///3.db", "--json",
                                  input=lines).stdout)  # fmt: skip
    assert document["runs"] == [{"workflow": "greeting", "id": "done", "outcome": "imported"}]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("export",), 2, "say which runs"),
        (("export", "a/b", "--where", "id=x"), 2, "say which runs"),
        (("export", "greeting/none"), 3, "no run 'none' of greeting"),
        (("export", "--where", "id=x"), 2, "no such runs: nothing was written"),
        (("export", "greeting/done", "-o", "greeting.json"), 2, "there already"),
        (("export", "greeting/done", "-o", "no/folder"), 2, "cannot be written"),
        (("import", "x", "--store", "memory:"), 2, "one process"),
    ],
)
@pytest.mark.usefixtures("moved")
def test_bad_input_is_told(words: tuple[str, ...], code: int, text: str) -> None:
    assert text in perdure(*words, code=code).stderr


@pytest.mark.slow
def test_a_killed_import_leaves_whole_runs_only() -> None:
    for n in range(40):
        perdure("start", "greeting.json", *NAMED, f"n{n}")
    perdure("export", "--where", "id=n*", "--running", "-o", "runs.jsonl")
    told_ = perdure("import", "runs.jsonl", "--store", "sqlite:///whole.db").stderr.splitlines()
    assert (len(told_), told_[0], told_[-1]) == (7, "40 runs imported", "… and 35 more are paused")
    process = start("import", "runs.jsonl", *THERE)
    while not Path("other.db").exists():
        assert process.poll() is None
    process.kill()
    process.wait()
    perdure("import", "runs.jsonl", "--skip-existing", *THERE)
    runs = told("list", "--limit", "100", *THERE)["runs"]
    assert len(runs) == 40
    for one in runs:
        assert whole(f"greeting/{one['id']}", *THERE) == whole(f"greeting/{one['id']}")
