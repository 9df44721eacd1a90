"""Ids of children: of the runs that calls ask for, and of the calls themselves.

An id that is not given is derived from the call's place, so that a replay and a repeated question
mean the same run, and no two runs mean one by accident. A further attempt of a node asks for a run
of its own: the one before is over, and stays as it ended.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

_LONGEST: Final = 256
#: What is kept of an id that would be too long; room for a hash and the number of an attempt.
_KEPT: Final = 200


def derived_id(definition: str, run: str, node: str, life: int = 1) -> str:
    """Of the child of a call: `<workflow>/<run>/<call>`, with `@2` and so on once the run has
    gone on as new, where calls are counted anew."""
    text = f"{definition}/{run}/{node}" + ("" if life == 1 else f"@{life}")
    return text if len(text) <= _LONGEST else _short(text)


def id_of_attempt(before: str, attempt: int) -> str:
    """Of the run that a further attempt (from 1, as counted from 0) asks for. `before`: the id of
    the attempt before it. The second attempt's is `<id>~2`."""
    first = before if attempt == 1 else before.removesuffix(f"~{attempt}")
    text = f"{first}~{attempt + 1}"
    return text if len(text) <= _LONGEST else f"{_short(first)}~{attempt + 1}"


def call_id(task: str, attempt: int) -> str:
    """What an attempt of a node's task is called where it asks for a run: each is told once."""
    return task if attempt == 0 else f"{task}~{attempt + 1}"


def _short(text: str) -> str:
    return f"{text[:_KEPT]}~{blake2b(text.encode(), digest_size=16).hexdigest()}"
