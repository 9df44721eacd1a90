"""Values given on the command line: JSON text, `@file`, or `-` for standard input."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from perdure.cli.exits import usage


def read_value(text: str | None, option: str) -> Any:
    """The value of an option; None where it was not given. Raises Trouble saying where in the
    text it stops being JSON."""
    if text is None:
        return None
    source, name = _source(text, option)
    try:
        value = json.loads(source, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()  # half a character may be written as \ud800
    except UnicodeEncodeError:
        raise usage(f"{name} has half a character in it (a surrogate): give whole ones") from None
    except json.JSONDecodeError as error:
        raise usage(f"{name} is not JSON: {_place(error)}{_advice(text, source)}") from None
    except (ValueError, RecursionError) as error:
        raise usage(f"{name} is not usable JSON: {error}") from None
    return value


def _source(text: str, option: str) -> tuple[str, str]:
    """The JSON text, and what to call it."""
    try:
        if text == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig"), f"{option}: standard input"
        if text.startswith("@"):
            data = Path(text[1:]).read_bytes()
            return data.decode("utf-8-sig"), f"{option}: {text[1:]}"
    except OSError as error:
        raise usage(f"{option}: {text[1:]} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise usage(f"{option}: {text} is not UTF-8 text") from None
    return typed(text), option


def typed(text: str) -> str:
    """A word of the command line, also where it was typed as UTF-8 and the locale has less."""
    try:
        return os.fsencode(text).decode() if not text.isascii() else text
    except UnicodeError:
        return text  # whoever uses it says that it is not Unicode


def _place(error: json.JSONDecodeError) -> str:
    where = f"line {error.lineno}, column {error.colno}"
    lines = error.doc.splitlines()
    line = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
    near = line[max(0, error.colno - 21) : error.colno + 19]
    return f"{where}: {error.msg[:1].lower()}{error.msg[1:]}" + (
        f" (near {near!r})" if near else ""
    )


def _advice(text: str, source: str) -> str:
    if not source.strip():
        return "; it is empty"
    if text is source and Path(text).suffix == ".json":
        return f"; to read that file write @{text}"
    if text is source and source.strip().isidentifier():
        return f"; text needs its quotes: '\"{source.strip()}\"'"
    return ""


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON has no {constant}: use null or text")


def read_config(text: str | None) -> dict[str, Any] | None:
    """The value of --config: a JSON object."""
    value = read_value(text, "--config")
    if value is not None and not isinstance(value, dict):
        raise usage("--config is not a JSON object: write '{\"key\": …}'")
    return value
