"""Store URLs: `sqlite:///orders.db`, `sqlite:////var/lib/orders.db`, `memory:`.

Options follow `?`: `sync=full|normal` (a power cut loses nothing, or the last commits) and
`unsafe=1` (several processes on a file although this SQLite may lose commits then).
"""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from perdure.model.errors import InvalidOptions
from perdure.stores.memory import MemoryStore
from perdure.stores.port import Store
from perdure.stores.sqlite import SqliteStore

_OPTIONS = {"sync": ("full", "normal"), "unsafe": ("0", "1")}


def store_of(url: str, *, read_only: bool = False) -> Store:
    """The store a URL names; nothing is opened. `read_only`: to look at what another process may
    be writing, without a lock on the file. Raises InvalidOptions saying what is wrong."""
    scheme, separator, _ = url.partition(":")
    if scheme == "memory" and separator and url in ("memory:", "memory://"):
        return MemoryStore()
    if scheme == "sqlite" and separator:
        return _sqlite(url, read_only)
    raise InvalidOptions(
        f"store {url!r} is not known: use 'sqlite:///file.db' (relative), "
        "'sqlite:////absolute/file.db' or 'memory:'"
    )


def sqlite_file(url: str) -> str | None:
    """The path of the file that a SQLite URL names; None for other stores. Raises InvalidOptions
    for one that no file can have."""
    if not url.startswith("sqlite:"):
        return None
    try:
        path = unquote(urlsplit(url).path)[1:]
    except ValueError as error:
        raise InvalidOptions(f"store {url!r} is no URL: {error}") from None
    if "\0" in path:
        raise InvalidOptions(f"store {url!r}: no file has %00 in its name")
    return path


def _sqlite(url: str, read_only: bool) -> Store:
    path = sqlite_file(url) or ""
    parts = urlsplit(url)
    if not url.startswith("sqlite:///") or not parts.path.strip("/"):
        raise InvalidOptions(
            f"store {url!r} names no file: use 'sqlite:///file.db' (three slashes, relative) or "
            "'sqlite:////absolute/file.db' (four)"
        )
    if "#" in url:
        raise InvalidOptions(f"store {url!r}: write # in the name of a file as %23")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in options.items():
        allowed = _OPTIONS.get(name)
        if allowed is None:
            raise InvalidOptions(
                f"store {url!r}: option {name!r} is not known; there are {', '.join(_OPTIONS)}"
            )
        if value not in allowed:
            raise InvalidOptions(f"store {url!r}: {name} must be one of {', '.join(allowed)}")
    normal = options.get("sync") == "normal"
    return SqliteStore(
        path,
        synchronous="normal" if normal else "full",
        unsafe=options.get("unsafe") == "1",
        read_only=read_only,
    )
