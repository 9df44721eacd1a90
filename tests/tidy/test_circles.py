"""Files of the package import one another in no circle but those listed with a reason, and those
may only shrink."""

from __future__ import annotations

import pytest

from tests.tidy import circles
from tests.tidy.tree import Source, planted, sources

# package -> why files inside it may refer to one another
ROOMS = {
    "perdure.engine.runs": "deciding, writing and carrying out call one another: decision 0038",
    "perdure.engine.worker": "a worker and its parts, each with one idea: decision 0038",
}

# modules in order -> why they may refer to one another for now
CIRCLES: dict[circles.Circle, str] = {}

ROOM = {"perdure.room": "a room"}


def arrows_of(**texts: str) -> circles.Arrows:
    """Arrows of modules of these texts; `room__a`: perdure/room/a.py."""
    return circles.arrows(module(name, text) for name, text in texts.items())


def module(name: str, text: str) -> Source:
    return planted(text, f"src/perdure/{name.replace('__', '/')}.py")


def test_no_files_import_one_another_in_a_circle_unless_listed() -> None:
    assert circles.not_allowed(circles.arrows(sources("src")), ROOMS, CIRCLES) == []


def test_every_circle_that_is_listed_is_still_there() -> None:
    assert circles.not_needed(circles.arrows(sources("src")), ROOMS, CIRCLES) == []


@pytest.mark.parametrize(
    "back",
    [
        "import perdure.a\n",
        "from perdure.a import x\n",
        "from perdure import a\n",
        "from . import a\n",
        "from .a import x\n",
        "def f():\n    from perdure.a import x\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from perdure.a import x\n",
    ],
)
def test_a_circle_is_found_whichever_way_it_is_imported(back: str) -> None:
    known = arrows_of(a="from perdure.b import y\n", b=back)
    assert circles.circles(known) == [("perdure.a", "perdure.b")]


def test_a_circle_is_found_however_far_around_and_the_way_is_told() -> None:
    known = arrows_of(
        a="import perdure.b\n",
        b="import perdure.c\nimport perdure.far\n",
        c="import perdure.d\n",
        d="import perdure.a\nimport perdure.b\n",
        far="import perdure.deep.x\n",
        above="import perdure.a\n",
        deep__x="import asyncio\n",
    )
    [problem] = circles.not_allowed(known, {}, {})
    assert "4 files" in problem
    assert "perdure.a -> perdure.b -> perdure.c -> perdure.d -> perdure.a" in problem


def test_files_that_only_point_down_are_no_circle() -> None:
    known = arrows_of(a="import perdure.b, perdure.c\n", b="import perdure.c\n", c="")
    assert circles.circles(known) == []
    assert circles.circles(arrows_of(a="import perdure.a\n")) == []  # a mention of itself


def test_the_file_of_a_package_is_a_file_as_any() -> None:
    """Not what is inside it: who imports that, need not know what the package says of it."""
    inside = planted("from ..b import y\n", "src/perdure/pack/inside.py")
    package = planted("from .inside import x\n", "src/perdure/pack/__init__.py")
    of_the_module = circles.arrows(
        [inside, package, module("b", "from perdure.pack.inside import x\n")]
    )
    assert circles.circles(of_the_module) == [("perdure.b", "perdure.pack.inside")]
    of_the_package = circles.arrows([inside, package, module("b", "from perdure.pack import x\n")])
    assert circles.circles(of_the_package) == [("perdure.b", "perdure.pack", "perdure.pack.inside")]


def test_a_circle_that_is_allowed_passes_as_it_is_and_no_larger() -> None:
    allowed = {("perdure.a", "perdure.b"): "for this test"}
    two = arrows_of(a="import perdure.b\n", b="import perdure.a\n", c="")
    assert circles.not_allowed(two, {}, allowed) == circles.not_needed(two, {}, allowed) == []
    three = arrows_of(a="import perdure.b\n", b="import perdure.c\n", c="import perdure.a\n")
    assert len(circles.not_allowed(three, {}, allowed)) == 1
    assert circles.not_needed(three, {}, allowed) == ["perdure.a, perdure.b"]


def test_a_circle_within_a_room_passes_and_one_that_leaves_it_does_not() -> None:
    within = arrows_of(room__a="import perdure.room.b\n", room__b="import perdure.room.a\n")
    assert circles.not_allowed(within, ROOM, {}) == circles.not_needed(within, ROOM, {}) == []
    out = arrows_of(room__a="import perdure.rooms\n", rooms="import perdure.room.a\n")
    assert len(circles.not_allowed(out, ROOM, {})) == 1


def test_what_is_allowed_and_is_gone_is_named() -> None:
    known = arrows_of(a="import perdure.b\n", b="", room__a="import perdure.a\n")
    allowed = {("perdure.a", "perdure.b"): "for this test"}
    assert circles.not_needed(known, ROOM, allowed) == ["perdure.a, perdure.b", "perdure.room"]
