"""`publish`, `definitions` and `start --version`: versions of a document, and taking one back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import GREETING, chain, perdure, run, task, write

pytestmark = pytest.mark.usefixtures("folder")

ANN = ("--input", '{"name": "Ann"}', "--id")


def told(*words: str) -> Any:
    return json.loads(perdure(*words, "--json").stdout)


def publish(version: str, **more: Any) -> Any:
    """Publish the greeting under a label; what was told."""
    return told("publish", write(f"v{version}.json", {**GREETING, "version": version, **more}))


def listed(*words: str) -> list[tuple[str, bool, int, int]]:
    found = told("definitions", *words)["definitions"]
    return [(one["version"], one["current"], one["running"], one["ended"]) for one in found]


@pytest.mark.rule("D-36")
def test_publishing_makes_the_version_that_new_runs_get_and_starts_nothing() -> None:
    first, second = publish("1"), publish("2")
    assert (first["before"], second["before"]["version"]) == (None, "1")
    assert told("list")["runs"] == []
    assert told("start", "greeting", *ANN, "a")["version"] == "2"
    assert listed() == [("2", True, 1, 0), ("1", False, 0, 0)]


@pytest.mark.rule("D-36")
def test_a_document_without_a_version_is_called_by_its_hash() -> None:
    info = told("publish", "greeting.json")
    assert info["version"] == info["hash"][:12]


def test_publishing_an_older_one_again_takes_the_newer_back_and_runs_keep_theirs() -> None:
    publish("1")
    publish("2")
    perdure("start", "greeting", *ANN, "a")
    said = perdure("publish", "v1.json").stderr
    assert "greeting version 1 is published: new runs get it, and no longer 2" in said
    assert "1 run of version 2 keeps that" in said
    assert told("start", "greeting", *ANN, "b")["version"] == "1"
    assert listed("greeting") == [("1", True, 1, 0), ("2", False, 1, 0)]
    run("v2.json", "--id", "a")
    assert told("show", "greeting/a")["version"] == "2"


def test_starting_from_a_file_does_not_undo_a_rollback() -> None:
    publish("1")
    publish("2")
    perdure("publish", "v1.json")
    run("v2.json", *ANN, "a")
    assert listed() == [("1", True, 0, 0), ("2", False, 0, 1)]


def test_publishing_what_is_current_changes_nothing_and_says_so() -> None:
    publish("1")
    assert perdure("publish", "v1.json").stderr == "greeting version 1 is current, as it was\n"


def test_a_label_used_again_for_other_content_is_refused_unless_it_is_meant() -> None:
    publish("1")
    write("other.json", {**GREETING, "version": "1", "description": "other"})
    refused = perdure("publish", "other.json", code=2)
    assert "version 1 of greeting is known already with other content" in refused.stderr
    assert "give the document another `version`" in refused.stderr
    assert len(listed()) == 1
    perdure("publish", "other.json", "--relabel")
    assert [version for version, *_ in listed()] == ["1", "1"]
    source = told("definitions", "greeting", "--version", "1", "--source")
    assert source["document"]["description"] == "other"


def test_errors_refuse_and_warnings_are_shown() -> None:
    write("bad.json", {**GREETING, "nodez": 1})
    assert "nodez" in perdure("publish", "bad.json", code=2).stderr
    assert not Path("perdure.db").exists()
    switch = chain("chooses", {"id": "route", "type": "SWITCH"}, task("greet", "greet", {}))
    document = told("publish", write("warned.json", switch))
    assert len(document["warnings"]) == 1
    assert "SWITCH" in document["warnings"][0]


def test_steps_that_an_app_lacks_refuse() -> None:
    write("bad.json", chain("bad", task("a", "nobody", {})))
    refused = perdure("publish", "bad.json", "--app", "steps.py", code=2)
    assert "calls step nobody" in refused.stderr
    perdure("publish", "bad.json")


def test_a_version_is_found_by_its_label_and_by_the_beginning_of_its_hash() -> None:
    hash = publish("1")["hash"]
    publish("2", description="other")
    for version in ("1", hash, hash[:8], hash[:8].upper()):
        found = told("definitions", "greeting", "--version", version)["definitions"]
        assert [one["hash"] for one in found] == [hash]
    assert told("start", "greeting", *ANN, "a", "--version", hash[:8])["version"] == "1"
    for version in ("3", hash[:5]):
        said = perdure("definitions", "greeting", "--version", version, code=3).stderr
        assert f"greeting has no version {version}; there are 2, 1" in said


def test_the_source_is_a_document_with_the_same_hash() -> None:
    hash = publish("1", description="äöü")["hash"]
    printed = perdure("definitions", "greeting", "--source").stdout
    Path("again.json").write_text(printed, encoding="utf-8")
    assert told("publish", "again.json")["hash"] == hash


def test_a_retry_goes_on_with_the_current_version() -> None:
    bad = {"name": "greeting", "nodes": [task("greet", "refuse", {"text": "x"})]}
    perdure("publish", write("v1.json", {**bad, "version": "1"}))
    run("v1.json", "--id", "a", code=1)
    good = [task("greet", "greet", {"name": "x"})]
    perdure("publish", write("v2.json", {**bad, "nodes": good, "version": "2"}))
    assert told("retry", "greeting/a")["version"] == "2"


def test_definitions_are_a_table_for_people() -> None:
    publish("1")
    head, line = perdure("definitions").stdout.splitlines()
    assert head.split() == ["NAME", "VERSION", "HASH", "PUBLISHED", "RUNNING", "ENDED"]
    assert line.split()[:2] == ["greeting", "1"]
    assert line.endswith("current")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("definitions", "--source"), 2, "name the definition"),
        (("definitions", "none"), 3, "no definition with the name none"),
        (("definitions", "none", "--source"), 3, "no definition with the name none"),
        (("start", "greeting.json", "--version", "1"), 2, "a FILE is a version itself"),
        (("start", "none", "--version", "1"), 3, "perdure definitions shows what is there"),
        (("publish", "nowhere.json"), 2, "nowhere.json"),
        (("publish", "greeting.json", "--store", "memory:"), 2, "one process"),
    ],
)
def test_bad_input_is_told(words: tuple[str, ...], code: int, text: str) -> None:
    publish("1")
    assert text in perdure(*words, code=code).stderr


def test_an_empty_store_has_no_definitions() -> None:
    assert "there is no database" in perdure("definitions", code=5).stderr
    perdure("db", "migrate")
    assert "no definitions" in perdure("definitions").stderr
    assert told("definitions") == {"definitions": []}
