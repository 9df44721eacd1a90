"""All cases, in the order of the page, and what they say."""

from __future__ import annotations

from functools import cache

from tests.docs.messages import documents, doubts, requests, running, specs
from tests.docs.messages.case import unique
from tests.docs.messages.page import said

SECTIONS = unique(
    [*documents.SECTIONS, *specs.SECTIONS, *doubts.SECTIONS, *running.SECTIONS, *requests.SECTIONS]
)


@cache
def messages() -> dict[str, str]:
    """Key to message, all made now."""
    return {case.key: said(case) for section in SECTIONS for case in section.cases}
