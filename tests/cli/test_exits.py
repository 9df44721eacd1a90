"""Every exception becomes one message and an exit code that says who must act."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click
import pytest

from perdure.cli.exits import trouble_of
from perdure.cli.main import main
from perdure.model import errors
from tests.cli.commands import perdure


@pytest.mark.parametrize(
    ("error", "code", "name"),
    [
        (errors.GraphError("no"), 2, "definition"),
        (errors.InvalidOptions("no"), 2, "definition"),
        (errors.InvalidRequest("no"), 2, "usage"),
        (errors.PayloadTooLarge("no"), 2, "usage"),
        (errors.Unsupported("no"), 2, "usage"),
        (errors.NotFound("no"), 3, "not-found"),
        (errors.StoreError("no"), 5, "store"),
        (KeyError("no"), 70, "unexpected"),
    ],
)
def test_the_exit_code_says_who_must_act(error: Exception, code: int, name: str) -> None:
    trouble = trouble_of(error)
    assert (trouble.exit_code, trouble.code) == (code, name)
    assert "no" in trouble.message


@contextmanager
def broken_command(error: BaseException) -> Iterator[None]:
    """While inside, `perdure break` raises this."""

    @click.command("break")
    def broken() -> None:
        raise error

    main.add_command(broken)
    try:
        yield
    finally:
        del main.commands["break"]


def test_what_nobody_expected_is_short_and_says_how_to_see_more() -> None:
    with broken_command(ValueError("odd")):
        result = perdure("break", code=70)
    assert result.stderr.splitlines() == [
        "perdure: unexpected error: ValueError: odd",
        "Set PERDURE_DEBUG=1 to see where it came from.",
    ]
    assert result.stdout == ""


def test_the_traceback_is_shown_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERDURE_DEBUG", "1")
    with broken_command(ValueError("odd")), pytest.raises(SystemExit) as caught:
        main(["break"])
    assert caught.value.code == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "PERDURE_DEBUG" not in said


def test_an_interrupt_ends_with_130() -> None:
    with broken_command(KeyboardInterrupt()):
        assert perdure("break", code=130).stderr == "perdure: interrupted\n"


@pytest.mark.parametrize("given", [5, 0, None, "done"])
def test_an_exit_of_users_code_is_not_read_as_one_of_the_command_s(given: object) -> None:
    with broken_command(SystemExit(given)):
        result = perdure("break", code=70)
    assert f"the code that it ran ended the process: SystemExit({given!r})" in result.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("run", "none.json"), 2, "definition"),
        (("result", "nameless"), 2, "usage"),
        (("show", "a/b"), 5, "store"),
        (("start", "none"), 3, "not-found"),
    ],
)
def test_with_json_every_error_is_one_document_of_one_shape(
    words: tuple[str, ...], code: int, name: str
) -> None:
    result = perdure(words[0], "--json", *words[1:], code=code)
    error = json.loads(result.stdout)["error"]
    assert sorted(error) == ["code", "message"]
    assert error["code"] == name
    assert error["message"] in result.stderr
