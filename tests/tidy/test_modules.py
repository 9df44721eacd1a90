"""Every module has a purpose, a name that tells it, a user, and only the packages it may have."""

from __future__ import annotations

import pytest

from tests.tidy import modules
from tests.tidy.tree import all_sources, planted, sources

#: Modules that people or tools reach from outside the package.
DOORS = {
    "perdure": "the public names",
    "perdure.__main__": "python -m perdure",
    "perdure.cli.main": "the console script",
    "perdure.pytest_plugin": "the fixture that pytest finds",
    "perdure.blocking": "the classes of synchronous programs",
    "perdure.errors": "every exception",
    "perdure.drivers": "the protocols of whoever writes a driver",
    "perdure.conformance": "the kit of whoever writes a store",
    "perdure.conformance.__main__": "python -m perdure.conformance",
}

#: Third-party package -> where it may be imported. The core has three; the rest are extras.
PLACES = {
    "msgspec": ("perdure",),
    "click": ("perdure.cli",),
    "pytest": ("perdure.pytest_plugin",),
    "cronsim": ("perdure.engine",),
    "aiohttp": ("perdure.engine.handlers",),
    "opentelemetry": ("perdure.telemetry",),
    "fastjsonschema": ("perdure.graph.inputs",),
    "yaml": ("perdure.graph.yaml_nodes",),
    "yarl": ("perdure.engine.handlers",),  # comes with aiohttp, which takes URLs as its own
    "rich": ("perdure.cli",),
    "pysqlite3": ("perdure.stores.sqlite",),
}


def test_names_of_files_say_what_they_hold() -> None:
    assert modules.empty_names(s.path for s in all_sources()) == []


def test_every_module_opens_with_a_docstring() -> None:
    assert modules.without_docstring(all_sources()) == []


def test_every_module_is_used() -> None:
    assert modules.dead(sources("src"), DOORS) == []


def test_nothing_below_imports_the_public_names() -> None:
    assert [p for s in sources("src") for p in modules.imports_of_the_root(s)] == []


def test_third_party_packages_keep_to_their_places() -> None:
    assert [p for s in sources("src") for p in modules.foreign_imports(s, PLACES)] == []


@pytest.mark.parametrize("path", ["src/perdure/utils.py", "src/a/run_manager.py", "src/core/x.py"])
def test_an_empty_name_is_caught(path: str) -> None:
    assert len(modules.empty_names([path])) == 1
    assert modules.empty_names(["src/perdure/kernel/routing.py"]) == []


def test_a_missing_docstring_is_caught() -> None:
    assert len(modules.without_docstring([planted("x = 1\n")])) == 1
    assert modules.without_docstring([planted(""), planted('"""Owns x."""\nx = 1\n')]) == []


def test_a_dead_module_is_caught() -> None:
    a = planted("from perdure.b import c\n", "src/perdure/a.py")
    package = planted("", "src/perdure/b/__init__.py")
    c = planted("import perdure.b.c\n", "src/perdure/b/c.py")
    lonely = planted("import perdure.b.lonely\n", "src/perdure/b/lonely.py")
    found = modules.dead([a, package, c, lonely], {"perdure.a": "a door"})
    assert found == ["src/perdure/b/lonely.py: nothing imports it"]


def test_a_lazy_import_by_name_keeps_a_module_alive() -> None:
    a = planted("COMMANDS = ['perdure.b:run']\n", "src/perdure/a.py")
    b = planted("x = 1\n", "src/perdure/b.py")
    assert modules.dead([a, b], {"perdure.a": "a door"}) == []


def test_an_import_of_the_root_is_caught() -> None:
    assert len(modules.imports_of_the_root(planted("from perdure import Client\n"))) == 1
    assert len(modules.imports_of_the_root(planted("import perdure\n"))) == 1
    assert modules.imports_of_the_root(planted("from perdure.model import ids\n")) == []


def test_a_package_out_of_place_is_caught() -> None:
    assert len(modules.foreign_imports(planted("import click\n"), PLACES)) == 1
    assert len(modules.foreign_imports(planted("import numpy\n"), PLACES)) == 1
    cli = planted("import click\n", "src/perdure/cli/main.py")
    assert modules.foreign_imports(cli, PLACES) == []
