"""Telemetry where OpenTelemetry is missing, or is not what it should be."""

from __future__ import annotations

import logging
import sys
from types import ModuleType

import pytest

from perdure import Client, Engine
from perdure.errors import InvalidOptions
from perdure.telemetry import Telemetry
from perdure.telemetry.service import OPENTELEMETRY, _Default, telemetry_of

INSTRUMENTS = "perdure.telemetry.instruments"


def test_without_opentelemetry_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, INSTRUMENTS, None)
    with pytest.raises(InvalidOptions) as refused:
        Telemetry()
    assert str(refused.value) == "telemetry needs the extra [otel]: pip install 'perdure[otel]'"


def test_what_is_no_telemetry_is_refused_where_it_is_given() -> None:
    for given in ("otlp", object):
        for kind in (Client, Engine):
            with pytest.raises(InvalidOptions, match="give Telemetry"):
                kind("memory:", telemetry=given)  # type: ignore[arg-type]


@pytest.mark.rule("W-63")
def test_without_opentelemetry_nothing_is_observed() -> None:
    assert OPENTELEMETRY not in sys.modules
    assert telemetry_of(None) is None


@pytest.mark.rule("W-63")
def test_one_that_cannot_be_used_is_told_of_once_and_observes_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, OPENTELEMETRY, ModuleType(OPENTELEMETRY))
    monkeypatch.setitem(sys.modules, INSTRUMENTS, None)
    monkeypatch.setattr(_Default, "made", None)
    monkeypatch.setattr(_Default, "unfit", False)
    with caplog.at_level(logging.WARNING):
        assert telemetry_of(None) is None
        assert telemetry_of(None) is None
    told = "this OpenTelemetry cannot be used: nothing is observed"
    assert [record.message for record in caplog.records] == [told]


@pytest.mark.usefixtures("seen")
def test_one_that_nobody_set_a_provider_of_is_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import trace

    assert telemetry_of(None) is None
    assert telemetry_of(Telemetry()) is None
    monkeypatch.delattr(trace, "_TRACER_PROVIDER")  # what it keeps to itself may be anything
    assert telemetry_of(None) is not None
