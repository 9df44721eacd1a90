"""The rules names and ids obey (D-23, W-1, W-3).

Each check raises the declaration error that says what is wrong and what is allowed.
"""

from __future__ import annotations

import re
import sys

from perdure.model.errors import InvalidId, InvalidName

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_NODE = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_ID = 256


def check_name(name: object, what: str = "name") -> str:
    """A workflow's, step's or signal's name: 1-64 of `a-z 0-9 -`, no hyphen at either end.

    Raises InvalidName.
    """
    if isinstance(name, str) and is_name(name):
        return name
    raise InvalidName(
        f"{what} {name!r} is not valid: use 1-64 characters of a-z 0-9 -, "
        f"with no hyphen at either end{_nearest(name)}"
    )


def is_name(text: object) -> bool:
    """Whether text can be a workflow's, step's or signal's name; see check_name."""
    return isinstance(text, str) and bool(_NAME.fullmatch(text))


def _nearest(name: object) -> str:
    """`; did you mean "send-welcome"?` for `send_welcome`: what a function of that name gets."""
    near = name_from_function(name) if isinstance(name, str) else ""
    return f'; did you mean "{near}"?' if _NAME.fullmatch(near) else ""


def is_node_id(text: object) -> bool:
    """Whether text can be a graph node's id: `[A-Za-z_][A-Za-z0-9_-]*`, no hyphen at the end."""
    return isinstance(text, str) and len(text) <= _MAX_ID and bool(_NODE.fullmatch(text))


def check_run_id(run_id: object) -> str:
    """A run's id: 1-256 characters without ASCII control characters. Raises InvalidId."""
    if not isinstance(run_id, str) or not run_id:
        raise InvalidId(f"run id {run_id!r} is not valid: use a non-empty string")
    if len(run_id) > _MAX_ID:
        raise InvalidId(f"run id of {len(run_id)} characters is too long: at most {_MAX_ID}")
    if run_id.isascii() and run_id.isprintable():
        return run_id
    if _CONTROL.search(run_id):
        raise InvalidId(f"run id {run_id!r} has control characters: leave them out")
    try:
        run_id.encode()
    except UnicodeEncodeError:
        raise InvalidId(f"run id {run_id!r} is not valid Unicode") from None
    return run_id


def name_from_function(function_name: str) -> str:
    """`send_welcome` → `send-welcome`."""
    return function_name.strip("_").replace("_", "-").lower()


def type_name(kind: type) -> str:
    """A class as its users import it: also one that a package keeps in a module of its own."""
    module, name = kind.__module__, kind.__qualname__
    if module == "builtins":
        return name
    public, private, _ = module.partition("._")
    if private and getattr(sys.modules.get(public), name, None) is kind:
        module = public
    return f"{module}.{name}"
