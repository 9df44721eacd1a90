"""perdure.blocking says what the asynchronous classes say: it is written from them."""

from __future__ import annotations

import importlib.util
import inspect
from types import ModuleType

import pytest

import perdure
import perdure.blocking
from tests.tidy.tree import ROOT


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mirror", ROOT / ".ci" / "mirror.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mirror = script()


@pytest.mark.parametrize("one", mirror.MIRRORS, ids=lambda one: one.module)
def test_what_is_in_the_tree_is_what_the_script_writes(one: mirror.Mirror) -> None:
    path = ROOT / "src" / "perdure" / "blocking" / f"{one.module}.py"
    assert path.read_text(encoding="utf-8") == mirror.written(one), "run: python .ci/mirror.py"


@pytest.mark.parametrize("name", ["Client", "Engine", "Run"])
def test_every_public_name_of_a_class_has_its_mirror(name: str) -> None:
    theirs, ours = getattr(perdure, name), getattr(perdure.blocking, name)
    public = {n for n in dir(theirs) if not n.startswith("_")} - {"observe", "driver", "driver_as"}
    assert sorted(public - set(dir(ours))) == []
    for method in public:
        if inspect.isfunction(getattr(theirs, method)):
            assert not inspect.iscoroutinefunction(getattr(ours, method)), method
            names = list(inspect.signature(getattr(theirs, method)).parameters)
            assert list(inspect.signature(getattr(ours, method)).parameters) == names, method
