"""Store URLs: what each one names, and what is said of those that name nothing."""

from __future__ import annotations

import pytest

from perdure.client.client import Client
from perdure.client.urls import sqlite_file, store_of
from perdure.model.errors import InvalidOptions
from perdure.stores.memory import MemoryStore
from perdure.stores.sqlite.store import SqliteStore


@pytest.mark.parametrize("url", ["memory:", "memory://"])
def test_memory_is_a_store_of_its_own_each_time(url: str) -> None:
    one, other = store_of(url), store_of(url)
    assert isinstance(one, MemoryStore)
    assert one is not other


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///orders.db", "orders.db"),
        ("sqlite:////var/lib/orders.db", "/var/lib/orders.db"),
        ("sqlite:///data/my%20orders.db?sync=normal", "data/my orders.db"),
    ],
)
def test_a_sqlite_url_names_a_file_relative_or_absolute(url: str, path: str) -> None:
    store = store_of(url)
    assert isinstance(store, SqliteStore)
    assert store.path.as_posix().endswith(path)
    assert sqlite_file(url) == path


def test_other_urls_name_no_sqlite_file() -> None:
    assert sqlite_file("memory:") is None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "is not known"),
        ("orders.db", "is not known: use 'sqlite:///file.db'"),
        ("postgres://localhost/orders", "is not known"),
        ("memory:orders", "is not known"),
        ("sqlite:", "names no file"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///%00.db", "no file has %00 in its name"),
        ("sqlite://[x/a.db", "is no URL: Invalid IPv6 URL"),
        ("sqlite://orders.db", "three slashes"),
        ("sqlite:orders.db", "three slashes"),
        ("sqlite:///a.db?sync=maybe", "sync must be one of full, normal"),
        ("sqlite:///a.db?sync=", "sync must be one of"),
        ("sqlite:///a.db?unsafe=yes", "unsafe must be one of 0, 1"),
        ("sqlite:///run#1.db", "write # in the name of a file as %23"),
        ("sqlite:///a.db?mode=ro", "'mode' is not known; there are sync, unsafe"),
    ],
)
def test_a_url_that_names_no_store_is_refused_with_what_to_write(url: str, said: str) -> None:
    with pytest.raises(InvalidOptions) as raised:
        Client(url)
    assert said in str(raised.value)
    assert repr(url) in str(raised.value)
