"""Any graph, any order of reports, with noise and failing stores: the rules hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.kernel.actions import CreateTask, Transition
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.kernel.protocol import Deps
from perdure.model.errors import InvalidRequest, StoreError
from perdure.model.failure import FailureRecord
from tests.property.kernel.expected import Refused, expected
from tests.property.kernel.graphs import Drawn, graphs
from tests.unit.kernel.harness import Harness, finish, shown, text

#: Which of so many pending nodes reports next.
Choose = Callable[[list[str]], str]
Data = st.DataObject


def report(h: Harness, graph: Drawn, node: str) -> Transition:
    """The node's current attempt does what was drawn for it."""
    drawn, attempt = graph.node(node), h.nodes[node].attempt
    if attempt < drawn.tries:
        return h.fail(node, "not yet")
    if drawn.ends == "well":
        return h.complete(node, {"n": drawn.number})
    return h.fail(node, FailureRecord("Error", "for good", permanent=drawn.ends == "permanent"))


def pending(h: Harness) -> list[str]:
    """The nodes whose attempts are under way here."""
    return [n for n, state in h.nodes.items() if state.status == "pending" and not state.child]


def play(h: Harness, graph: Drawn, choose: Choose, before: Callable[[], None]) -> None:
    """Start the run and report until it ends; `before` each report, something may happen."""
    h.start({})
    for _ in range(200):
        waiting = pending(h)
        if not waiting:
            return
        before()
        report(h, graph, choose(waiting))
    raise AssertionError("the run does not end")


def statuses(h: Harness, graph: Drawn) -> dict[str, str]:
    return {node.id: h.status(node.id) for node in graph.nodes}


def check_ending(h: Harness, graph: Drawn) -> None:
    """What holds of every run that is over."""
    run, last = h.run, h.recorded()[-1]
    assert (run.active, run.status) == (0, finish(last).status)
    failed = [node for node in graph.nodes if h.status(node.id) == "failed"]
    assert (run.status == "failed") == bool(failed)
    created = [a.node for t in h.recorded() for a in t.actions if type(a) is CreateTask]
    assert len(created) == len(set(created))
    for node in graph.nodes[1:]:
        sources = [h.status(link.source) for link in graph.incoming(node.id)]
        if h.status(node.id) != "unreached":
            assert set(sources) <= {"completed", "skipped"}
        elif run.status == "completed":
            raise AssertionError(f"{node.id} was never reached, yet the run succeeded")
    times = [t.at for t in h.recorded()]
    assert times == sorted(times)


@pytest.mark.rule("G-48", "G-50", "G-45", "G-46", "D-6", "G-19")
@given(graphs(), st.data())
def test_every_run_ends_as_the_rules_say_whatever_the_order(graph: Drawn, data: Data) -> None:
    h = Harness(graph.plan(), live=True)
    choose = lambda nodes: data.draw(st.sampled_from(nodes))

    def something() -> None:
        h.advance(data.draw(st.integers(-5, 5)))
        if data.draw(st.booleans()):
            h.reload()

    try:
        end = expected(graph)
    except Refused:
        with pytest.raises(InvalidRequest, match="switch"):
            h.start({})
        assert h.journal == []
        return
    play(h, graph, choose, something)
    assert statuses(h, graph) == end
    check_ending(h, graph)


@pytest.mark.rule("G-35", "G-36", "G-37")
@given(graphs(), st.data())
def test_stale_doubled_and_foreign_reports_change_nothing(graph: Drawn, data: Data) -> None:
    h = Harness(graph.plan(), live=True)
    failure = FailureRecord("Error", "noise", permanent=True)
    past: list[NodeCompleted | NodeFailed] = [NodeCompleted("t000", "nowhere", 0, text({}))]

    def noise() -> None:
        for node, state in h.nodes.items():
            past.append(NodeCompleted(state.task, node, state.attempt + 1, text({"n": 9})))
            past.append(NodeFailed("other", node, state.attempt, failure))
            if state.attempt:
                past.append(NodeFailed(state.task, node, state.attempt - 1, failure))
            if state.status != "pending":
                past.append(NodeCompleted(state.task, node, state.attempt, text({"n": 9})))
        current = {(s.task, n, s.attempt) for n, s in h.nodes.items() if s.status == "pending"}
        for event in data.draw(st.lists(st.sampled_from(past), max_size=4)):
            if (event.task, event.node, event.attempt) not in current:
                transition = h.apply(event)  # the harness sees to it that nothing changes
                assert transition.ignored

    try:
        end = expected(graph)
    except Refused:
        return
    play(h, graph, lambda nodes: data.draw(st.sampled_from(nodes)), noise)
    assert statuses(h, graph) == end


@pytest.mark.rule("G-57")
@given(graphs(failing=False), st.randoms(use_true_random=False))
def test_the_order_of_reports_does_not_change_which_nodes_run(graph: Drawn, random: object) -> None:
    first, last, mixed = (Harness(graph.plan(), live=True) for _ in range(3))
    play(first, graph, lambda nodes: nodes[0], lambda: None)
    play(last, graph, lambda nodes: nodes[-1], lambda: None)
    play(mixed, graph, random.choice, lambda: None)  # type: ignore[attr-defined]
    assert statuses(first, graph) == statuses(last, graph) == statuses(mixed, graph)
    assert "failed" not in statuses(first, graph).values()
    assert first.output() == last.output() == mixed.output()


@pytest.mark.rule("D-10", "G-7", "G-71")
@given(graphs(), st.data())
def test_a_store_that_fails_at_any_load_is_as_if_it_had_not(graph: Drawn, data: Data) -> None:
    quiet, shaky = Harness(graph.plan()), Harness(graph.plan(), live=True)
    order = data.draw(st.permutations(range(len(graph.nodes))))
    rank = {node.id: place for node, place in zip(graph.nodes, order, strict=True)}
    choose = lambda nodes: min(nodes, key=rank.__getitem__)

    def fail_first() -> None:
        if data.draw(st.booleans()):
            shaky.reload()
        loads = len(shaky.loads)
        shaky.load_error = data.draw(st.sampled_from([StoreError("down"), KeyboardInterrupt()]))
        try:
            report(shaky, graph, choose(pending(shaky)))
        except (StoreError, KeyboardInterrupt):  # the harness has compared the snapshot
            assert len(shaky.loads) == loads + 1
            shaky.load_error = None
            report(shaky, graph, choose(pending(shaky)))

    try:
        play(quiet, graph, choose, lambda: None)
    except InvalidRequest:
        return
    shaky.start({})
    while pending(shaky):
        fail_first()
    assert shaky.journal == quiet.journal


@pytest.mark.rule("G-1", "G-4")
@given(graphs(), st.data())
def test_the_same_events_give_the_same_journal_byte_for_byte(graph: Drawn, data: Data) -> None:
    order = data.draw(st.permutations(range(len(graph.nodes))))
    rank = {node.id: place for node, place in zip(graph.nodes, order, strict=True)}
    choose = lambda nodes: min(nodes, key=rank.__getitem__)
    plan = graph.plan()
    live, again, reloaded = Harness(plan, live=True), Harness(plan, live=True), Harness(plan)
    for h in (live, again, reloaded):
        try:
            play(h, graph, choose, lambda: None)
        except InvalidRequest:
            assert h.journal == []
    assert live.journal == again.journal == reloaded.journal
    assert shown(live.run) == shown(reloaded.run)


@pytest.mark.rule("D-10", "G-7")
@given(graphs(), st.integers(0, 12))
def test_an_error_anywhere_in_a_decision_leaves_the_snapshot_alone(graph: Drawn, at: int) -> None:
    h = Harness(graph.plan(), live=True)
    left, draw_id = at, h.deps.new_id

    def new_id() -> str:
        nonlocal left
        left -= 1
        if left == -1:
            raise RuntimeError("out of ids")
        return draw_id()

    def attempt(event: Callable[[], Transition]) -> None:
        try:
            event()
        except RuntimeError:  # the harness has compared the snapshot
            event()

    h.deps = Deps(h.deps.now, new_id, h.deps.roll, h.deps.codec, h.deps.policy)
    h.reload()
    try:
        end = expected(graph)
    except Refused:
        return
    attempt(lambda: h.start({}))
    while waiting := pending(h):
        attempt(lambda node=waiting[0]: report(h, graph, node))  # type: ignore[misc]
    assert statuses(h, graph) == end
