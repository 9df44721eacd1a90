"""The page of messages: each one is made anew here, and none that the code can say is forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perdure.model import errors
from tests.docs.messages import every
from tests.docs.messages.page import PAGE, page_of
from tests.docs.messages.sites import Site, sites
from tests.tidy.tree import ROOT

NOT_TRIED = ROOT / "tests" / "docs" / "messages" / "not_tried.txt"
CASES = [case for section in every.SECTIONS for case in section.cases]

#: Classes that no use of graphs raises, and why.
ELSEWHERE = {
    "MissingMaxDuration": "of workflows written as code",
    "NoCases": "of workflows written as code",
    "NonDeterminism": "of workflows written as code",
    "StepFailed": "of workflows written as code",
    "Failure": "what Run.result raises; its kind and text are shown instead",
    "Canceled": "as Failure",
    "PayloadMissing": "never raised to a user: the run stalls, and says why",
}


def not_tried() -> list[str]:
    lines = NOT_TRIED.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def is_tried(site: Site, messages: list[str]) -> bool:
    return any(re.search(site.pattern, message, re.DOTALL) for message in messages)


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    return every.messages()


def test_the_page_shows_what_is_really_said(messages: dict[str, str]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of(every.SECTIONS, messages), (
        "make it anew: python -m tests.docs.messages"
    )


def test_each_message_is_said_once_and_says_something(messages: dict[str, str]) -> None:
    assert all(len(message) > 20 for message in messages.values())
    assert [key for key, message in messages.items() if "Traceback" in message] == []


@pytest.mark.parametrize("case", CASES, ids=[case.key for case in CASES])
def test_each_message_says_what_to_do(case: every.Case, messages: dict[str, str]) -> None:
    # What is wrong, and then, after a colon or a semicolon, what to do; else the page says it.
    said = messages[case.key].removesuffix(")")
    assert case.do or re.search(r"[;:] \S+ \S+|did you mean|ask with|write ", said), said


def test_every_message_of_the_code_is_tried_or_excused(messages: dict[str, str]) -> None:
    said, excused = list(messages.values()), set(not_tried())
    untried = [site.key for site in sites() if not is_tried(site, said)]
    assert [key for key in untried if key not in excused] == [], (
        "try it in tests/docs/messages, or name it in not_tried.txt with the reason"
    )


def test_no_message_is_excused_that_is_tried_or_gone(messages: dict[str, str]) -> None:
    said = list(messages.values())
    untried = {site.key for site in sites() if not is_tried(site, said)}
    assert [key for key in not_tried() if key not in untried] == []


def test_every_class_of_error_is_shown_or_excused(messages: dict[str, str]) -> None:
    names = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.PerdureError)
    }
    text = "\n".join(messages.values())
    shown = {name for name in names if re.search(rf"^{name}: ", text, re.MULTILINE)}
    shown |= {"TimedOut"} if "workflow.timeout: " in text else set()
    assert names - shown - ELSEWHERE.keys() == set()
    assert [name for name in ELSEWHERE if name in shown] == []


def test_a_message_that_nobody_tried_is_caught() -> None:
    site = Site("graph/new.py f", "a message of …", "a message of .*? that is new")
    assert not is_tried(site, ["another message"])
    assert is_tried(site, ["a message of mine that is new; do this"])


def test_the_sites_are_found_in_the_code() -> None:
    found = {site.where.split()[0].split("/")[0] for site in sites()}
    assert {"graph", "model", "kernel", "engine", "client", "cli", "stores"} <= found
    assert Path(PAGE).exists()
