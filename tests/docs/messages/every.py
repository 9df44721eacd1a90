"""All cases, in the order of the page, and what they say."""

from __future__ import annotations

from functools import cache

from tests.docs.messages import (
    asking,
    commands,
    documents,
    doubts,
    outside,
    requests,
    running,
    sagas,
    specs,
    stores,
)
from tests.docs.messages.case import unique
from tests.docs.messages.page import said

_AREAS = (documents, specs, doubts, running, asking, requests, outside, sagas, stores, commands)
SECTIONS = unique(section for area in _AREAS for section in area.SECTIONS)


@cache
def messages() -> dict[str, str]:
    """Key to message, all made now."""
    return {case.key: said(case) for section in SECTIONS for case in section.cases}
