"""Journal rows: what is written is read, large values stand apart, unknown records are judged."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from perdure.codec.journal import PLAIN, VALUES, VERSION, decode_row, encode_onward, encode_row
from perdure.codec.values import INLINE_LIMIT
from perdure.kernel import actions
from perdure.kernel.actions import (
    AnyAction,
    Claimed,
    CompleteTask,
    CreateTask,
    DispatchTask,
    OpenRun,
    Transition,
)
from perdure.kernel.onward import Decided, Onward
from perdure.model.errors import StoreError
from perdure.model.failure import FailureRecord

KINDS: tuple[type[msgspec.Struct], ...] = get_args(AnyAction)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
LARGE = b'"%b"' % (b"x" * INLINE_LIMIT)
VALUE = st.sampled_from([b"null", b"0", b'""', b"{}", b"[]", b'{"a":[1,null]}', LARGE]) | st.binary(
    max_size=3 * INLINE_LIMIT
).map(lambda data: msgspec.json.encode(data.hex()))
FAILURES = st.builds(
    FailureRecord,
    kind=st.text(min_size=1, max_size=8),
    message=st.text(max_size=8),
    permanent=st.booleans(),
    retry_after=st.none() | INTEGERS,
    details=st.none() | st.dictionaries(st.text(max_size=3), INTEGERS, max_size=2),
)


def field_strategy(field: msgspec.structs.FieldInfo) -> st.SearchStrategy[Any]:
    """What a field may hold, told from its type; its default, where it has one, half the time."""
    text = str(field.type)
    if field.name.endswith("_ref"):
        return st.none()
    if field.name in VALUES:
        return st.none() | VALUE.map(Raw)
    if "FailureRecord" in text:
        return FAILURES if field.required else st.none() | FAILURES
    if "Raw" in text:
        return st.none() | st.dictionaries(st.text(max_size=3), VALUE.map(Raw), max_size=2)
    return st.from_type(field.type)


@st.composite
def any_action(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(KINDS))
    fields = msgspec.structs.fields(kind)
    return kind(**{field.name: draw(field_strategy(field)) for field in fields})


TRANSITIONS = st.builds(
    Transition,
    at=INTEGERS,
    actions=st.lists(any_action(), max_size=4),
    ignored=st.none() | st.text(max_size=10),
    signal_delivered=st.booleans(),
) | st.builds(
    Onward,
    **{field.name: field_strategy(field) for field in msgspec.structs.fields(Onward)},
)

STEP = Transition(
    1_700_000_000_000_000,
    [
        CompleteTask("t1", "charge", 0, Raw(b'{"id":"ch_1"}')),
        CreateTask("t2", "ship", "pending", Raw(b"null")),
        DispatchTask("t2", "ship"),
    ],
)


def records_of(transition: Decided) -> list[Any]:
    """What holds its values."""
    return [transition] if isinstance(transition, Onward) else list(transition.actions)


def put_back(transitions: Sequence[Decided], payloads: Sequence[bytes]) -> list[Decided]:
    """The transitions with the values that stood apart in their places again."""
    for transition in transitions:
        for action in records_of(transition):
            for name in VALUES:
                ref = getattr(action, f"{name}_ref", None)
                if ref is not None:
                    msgspec.structs.force_setattr(action, name, Raw(payloads[ref]))
                    msgspec.structs.force_setattr(action, f"{name}_ref", None)
    return list(transitions)


@given(st.lists(TRANSITIONS, min_size=1, max_size=4))
def test_what_is_written_is_read_again_exactly(transitions: list[Decided]) -> None:
    body, payloads = encode_row(transitions)
    assert put_back(decode_row(body), payloads) == transitions


@given(st.lists(TRANSITIONS, min_size=1, max_size=4))
def test_every_value_over_the_limit_stands_apart_and_no_other(given: list[Decided]) -> None:
    _, payloads = encode_row(given)
    large = [
        bytes(value)
        for transition in given
        for action in records_of(transition)
        for name in VALUES
        if (value := getattr(action, name, None)) is not None and len(bytes(value)) > INLINE_LIMIT
    ]
    assert list(payloads) == large


def test_a_small_row_is_plain_json_that_says_only_what_is_set() -> None:
    body, payloads = encode_row([STEP])
    assert payloads == ()
    assert body == (
        b'{"v":1,"t":[{"at":1700000000000000,"do":['
        b'{"do":"CompleteTask","task":"t1","node":"charge","output":{"id":"ch_1"}},'
        b'{"do":"CreateTask","task":"t2","node":"ship","status":"pending","input":null},'
        b'{"do":"DispatchTask","task":"t2","node":"ship"}]}]}'
    )


ONWARD = Onward(
    1_700_000_000_000_000, "t1", "charge", "t2", "ship", Raw(b'{"id":"ch_1"}'), Raw(b"null")
)


def test_a_step_further_is_one_record_that_orders_the_same() -> None:
    assert ONWARD.actions == STEP.actions
    body = (
        b'{"v":2,"t":[{"at":1700000000000000,"task":"t1","node":"charge","next_task":"t2",'
        b'"next":"ship","output":{"id":"ch_1"},"input":null}]}'
    )
    assert encode_row([ONWARD]) == encode_onward(ONWARD) == (body, ())
    assert decode_row(body) == [ONWARD]


@given(st.sampled_from([b"null", LARGE]), st.sampled_from([b"{}", LARGE]), st.booleans())
def test_a_step_further_alone_is_written_as_among_others(
    output: bytes, input: bytes, digested: bool
) -> None:
    onward = Onward(1, "t", "a", "u", "b", Raw(output), Raw(input), 3, "q", 5)
    onward.digest = "d" if digested else None
    assert encode_onward(onward) == encode_row([onward])
    [read] = decode_row(encode_onward(onward)[0])
    completed, created, dispatched = read.actions
    assert (completed.task, completed.node, completed.attempt) == ("t", "a", 3)
    assert (completed.output is None) == (completed.output_ref is not None) == (output == LARGE)
    assert (created.task, created.node, created.digest) == ("u", "b", onward.digest)
    assert (created.input is None) == (created.input_ref is not None) == (input == LARGE)
    assert dispatched == DispatchTask("u", "b", 0, 0, "q", 5)


def test_a_row_of_both_kinds_skips_what_only_informs_too() -> None:
    one = msgspec.json.encode(ONWARD)
    body = b'{"v":2,"t":[%b,{"at":5,"do":[{"do":"~Note"},%b]}]}' % (one, CLAIMED.encode())
    assert decode_row(body) == [ONWARD, Transition(5, [Claimed("w")])]
    with pytest.raises(StoreError, match=r"record 'Teleport'.*upgrade perdure"):
        decode_row(body.replace(b"~Note", b"Teleport"))


def test_a_row_without_a_step_further_is_one_that_older_versions_read() -> None:
    assert encode_row([STEP])[0].startswith(b'{"v":1,')
    assert encode_row([STEP, ONWARD])[0].startswith(b'{"v":2,')
    assert decode_row(encode_row([STEP, ONWARD])[0]) == [STEP, ONWARD]


def test_a_recorded_null_is_not_a_missing_value() -> None:
    # scenario 110
    rows = [Transition(1, [CompleteTask("t", "n", 0, value)]) for value in (None, Raw(b"null"))]
    missing, null = decode_row(encode_row(rows)[0])
    assert missing.actions[0].output is None
    assert bytes(null.actions[0].output) == b"null"


def test_many_small_values_stay_in_the_row_however_long_it_gets() -> None:
    value = Raw(msgspec.json.encode("x" * (INLINE_LIMIT - 2)))
    row = [Transition(1, [CompleteTask(f"t{n}", "n", 0, value) for n in range(10)])]
    body, payloads = encode_row(row)
    assert not payloads
    assert decode_row(body) == row


def test_the_order_of_payloads_is_the_order_in_the_row() -> None:
    large = [Raw(msgspec.json.encode(letter * 5000)) for letter in "abc"]
    opened = OpenRun("d", "i", "1", "h", "3.11", input=large[0], config=large[1])
    body, payloads = encode_row([Transition(1, [opened, CompleteTask("t", "n", 0, large[2])])])
    assert payloads == [bytes(value) for value in large]
    read, completed = decode_row(body)[0].actions
    assert (read.input, read.input_ref, read.config_ref) == (None, 0, 1)
    assert (completed.output, completed.output_ref) == (None, 2)


def test_the_caller_keeps_his_actions_as_they_were() -> None:
    action = CompleteTask("t", "n", 0, Raw(msgspec.json.encode("x" * 5000)))
    encode_row([Transition(1, [action])])
    assert action.output is not None
    assert action.output_ref is None


def test_every_value_field_has_its_reference_beside_it() -> None:
    for kind in KINDS:
        names = set(kind.__struct_fields__)
        assert {f"{name}_ref" for name in VALUES if name in names} == {
            name for name in names if name.endswith("_ref")
        }


def test_every_action_of_the_kernel_can_be_in_a_row() -> None:
    known = {k for k in vars(actions).values() if isinstance(k, type)}
    concrete = {k for k in known if issubclass(k, actions.Action) and k is not actions.Action}
    assert concrete == set(KINDS)


def row(*records: str, version: int = PLAIN) -> bytes:
    return b'{"v":%d,"t":[{"at":5,"do":[%s]}]}' % (version, ",".join(records).encode())


CLAIMED = '{"do":"Claimed","worker":"w"}'


def test_an_unknown_record_that_only_informs_is_skipped() -> None:
    # scenario 21
    body = row('{"do":"~Note","text":"hi"}', CLAIMED, '{"do":"~Other"}')
    assert decode_row(body) == [Transition(5, [Claimed("w")])]


def test_an_unknown_record_that_decides_refuses_the_row_and_names_it() -> None:
    # scenario 21
    with pytest.raises(StoreError, match=r"record 'Teleport'.*upgrade perdure"):
        decode_row(row(CLAIMED, '{"do":"Teleport"}'))


def test_unknown_fields_of_known_records_are_passed_over() -> None:
    body = row('{"do":"Claimed","worker":"w","since":1}')
    assert decode_row(body) == [Transition(5, [Claimed("w")])]


@pytest.mark.parametrize("version", [VERSION + 1, 99, 0, -1])
def test_another_format_refuses_the_row_and_names_it(version: int) -> None:
    with pytest.raises(StoreError, match=rf"format {version};.*upgrade perdure"):
        decode_row(row(CLAIMED, version=version))


def test_a_newer_format_is_named_whatever_else_it_holds() -> None:
    with pytest.raises(StoreError, match="format 3"):
        decode_row(b'{"v":3,"rows":"elsewhere"}')


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\x00" * 40,
        b"[]",
        b'{"t":[]}',
        b'{"v":"1","t":[]}',
        b'{"v":1}',
        row('{"do":"Claimed"}'),
        row('{"worker":"w"}'),
        row("5"),
        row(CLAIMED)[:-3],
        row('{"do":"Claimed","worker":"\\ud800"}'),
        b'{"v":2,"t":[{"at":1,"task":"t","node":"n","next_task":"u"}]}',
        b'{"v":2,"t":[{"next_task":"u"}]}',
        b'{"v":2}',
    ],
    ids=repr,
)
def test_a_damaged_row_is_a_store_error(body: bytes) -> None:
    with pytest.raises(StoreError, match="damaged"):
        decode_row(body)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(StoreError):
        assert decode_row(body) == []  # too few for a transition


@given(st.data())
def test_a_row_with_a_byte_changed_is_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(encode_row([data.draw(st.sampled_from([STEP, ONWARD]))])[0])
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(StoreError):
        assert all(isinstance(read, Decided) for read in decode_row(bytes(body)))
