"""Reading variables, fields and items.

Most expressions are little but a chain like `tasks.fetch.output.body.total` over dicts, so a chain
is one closure that walks dicts straight, and only when that fails walks again slowly to say which
step failed and why. A lazy mapping is asked key by key and never copied; a LookupError of its own
whose text is a sentence becomes the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perdure.expr.budget import VARIABLES, Env
from perdure.expr.compare import has_key, present
from perdure.expr.errors import Fault
from perdure.expr.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    READY,
    TYPE_NAMES,
    Kind,
    Maybe,
    Uint,
    adopt,
    kind_of,
)

Eval = Callable[[Env], Any]
PENDING = object()
Step = tuple[Any, int]  # a constant key or index, and its offset in the source


def spell(root: str, keys: tuple[Any, ...] | list[Any]) -> str:
    """`tasks.fetch["a b"][0]`: a chain as one would write it."""
    out = [root]
    for key in keys:
        plain = isinstance(key, str) and key.replace("_", "a").isalnum() and key[:1].isalpha()
        out.append(f".{key}" if plain else f"[{key!r}]")
    return "".join(out)


def select(value: Any, key: str) -> Any:
    """`value.key`, through an optional if it is one."""
    if isinstance(value, Mapping):
        if type(value) is dict:
            if key in value:
                return value[key]
            raise Fault(f"no such key: {key}")
        return ask(value, key, key)
    if type(value) is Maybe:
        return select_optional(value, key)
    raise Fault(f"no such field: `{key}` of {_described(value)}")


def _described(value: Any) -> str:
    return "null" if value is None else f"a value of type {kind_of(value)}"


def ask(value: Mapping[Any, Any], key: Any, shown: str) -> Any:
    """Look `key` up in a mapping that may be lazy and may have words of its own for a miss."""
    try:
        return value[key]
    except LookupError as miss:
        text = miss.args[0] if miss.args else None
        if isinstance(text, str) and " " in text:
            raise Fault(text) from None
        raise Fault(f"no such key: {shown}") from None


def item(value: Any, key: Any) -> Any:
    """`value[key]` of a list, a map or an optional of one."""
    if type(value) is list or type(value) is tuple:
        if type(key) is float and key.is_integer():
            key = int(key)
        if type(key) is not int and type(key) is not Uint:
            raise Fault(f"no such overload: a list is indexed by int, not {kind_of(key)}")
        if 0 <= key < len(value):
            return value[key]
        raise Fault(f"index {key} is out of range: the list has {len(value)} items")
    if isinstance(value, Mapping):
        if type(key) is str:
            return select(value, key)
        if has_key(value, key):
            return value[int(key) if type(key) is float else key]
        raise Fault(f"no such key: {str(key).lower()}")
    if type(value) is Maybe:
        return item_optional(value, key)
    raise Fault(f"no such overload: a value of type {kind_of(value)} has no items")


def select_optional(value: Any, key: str) -> Maybe:
    """`value.?key`: an optional of the field."""
    if type(value) is Maybe:
        if not value.present:
            return NONE
        value = value.value
    if isinstance(value, Mapping):
        return _some(select(value, key), key) if present(value, key) else NONE
    raise Fault(f"no such overload: `.?{key}` of a value of type {kind_of(value)}")


def item_optional(value: Any, key: Any) -> Maybe:
    """`value[?key]`: an optional of the item."""
    if type(value) is Maybe:
        if not value.present:
            return NONE
        value = value.value
    if type(value) is list:
        if type(key) is not int and type(key) is not Uint:
            raise Fault(f"no such overload: a list is indexed by int, not {kind_of(key)}")
        return _some(value[key], f"item {key}") if 0 <= key < len(value) else NONE
    if isinstance(value, Mapping):
        return _some(item(value, key), f"item {key}") if has_key(value, key) else NONE
    raise Fault(f"no such overload: a value of type {kind_of(value)} has no items")


def _some(value: Any, name: str) -> Maybe:
    return Maybe(present=True, value=adopt(value, name))


def has_field(value: Any, key: str) -> bool:
    """`has(value.key)`."""
    if isinstance(value, Mapping):
        return present(value, key)
    if type(value) is Maybe:
        return bool(select_optional(value, key).present)
    raise Fault(f"no such field: `{key}` of {_described(value)}")


def variable_chain(root: str, at: int, steps: list[Step], container: str) -> Eval:
    """A closure that reads `root.step.step…` from the variables."""
    keys = tuple(key for key, _ in steps)

    def explain(env: Env) -> Any:
        return _walk(env[VARIABLES], root, at, steps, container)

    if container:
        return explain

    def read(env: Env) -> Any:
        try:
            value = env[0][root]
            for key in keys:
                value = value[key] if type(value) is dict else item(value, key)
        except (LookupError, Fault):
            return explain(env)
        kind = type(value)
        if kind is int:
            if INT_MIN <= value <= INT_MAX:
                return value
        elif kind in READY:
            return value
        return explain(env)

    return read


def lazy_chain(slot: int, name: str, steps: list[Step], compute: Eval) -> Eval:
    """`local_chain` for a variable of cel.bind(), computed when it is first read."""
    read = local_chain(slot, name, steps)

    def force(env: Env) -> Any:
        value = env[slot]
        if value is PENDING:
            try:
                env[slot] = compute(env)
            except Fault as fault:
                # Kept: to compute it again at every read could cost without bound.
                env[slot] = fault
                raise
        elif type(value) is Fault:
            raise Fault(value.message, value.at)
        return read(env)

    return force


def local_chain(slot: int, name: str, steps: list[Step]) -> Eval:
    """A closure that reads `name.step.step…` from a macro variable."""
    if not steps:
        return lambda env: env[slot]
    keys = tuple(key for key, _ in steps)

    def read(env: Env) -> Any:
        value = env[slot]
        try:
            for key in keys:
                value = value[key] if type(value) is dict else item(value, key)
        except (LookupError, Fault):
            return _follow(env[slot], name, steps)
        kind = type(value)
        if kind is int:
            if INT_MIN <= value <= INT_MAX:
                return value
        elif kind in READY:
            return value
        return adopt(value, spell(name, keys))

    return read


def _follow(value: Any, name: str, steps: list[Step]) -> Any:
    """Walk slowly, so that the step that fails is named."""
    for i, (key, at) in enumerate(steps):
        try:
            value = select(value, key) if isinstance(key, str) else item(value, key)
        except Fault as fault:
            path = spell(name, [k for k, _ in steps[: i + 1]])
            if fault.message.startswith("no such key: "):
                fault.message = f"no such key: {path}"
            if fault.at < 0:
                fault.at = at
            raise
    return adopt(value, spell(name, [key for key, _ in steps]))


def _walk(
    variables: Mapping[str, Any], root: str, at: int, steps: list[Step], container: str
) -> Any:
    """The slow way: containers, names with dots, type names, and errors that say which step."""
    names = [root]
    for key, _ in steps:
        if not isinstance(key, str):
            break
        names.append(f"{names[-1]}.{key}")
    for prefix in _prefixes(container):
        for count in range(len(names), 0, -1):
            name = prefix + names[count - 1]
            if present(variables, name):
                return _follow(ask(variables, name, name), name, steps[count - 1 :])
    for count in range(len(names), 0, -1):
        if names[count - 1] in TYPE_NAMES:
            return _follow(Kind(names[count - 1]), names[count - 1], steps[count - 1 :])
    raise Fault(f"no such variable: {root}", at)


def _prefixes(container: str) -> list[str]:
    parts = container.split(".") if container else []
    return [".".join(parts[:count]) + "." for count in range(len(parts), 0, -1)] + [""]
