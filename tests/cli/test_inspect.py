"""Describing models that are built by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from armpy.cli.inspect.describe import InspectionReport, report_of
from armpy.cli.inspect.report import print_model
from armpy.core.units import printable
from armpy.graph.network import Network
from armpy.inspect import describe_model
from armpy.model import Model
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.control_flow import loop
from armpy_testing.models.networks import ADD, RELU, f32

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def open_model() -> Model:
    net = Network("open")
    net.output("y", net.add(RELU, net.input("x", f32(None, 2))))
    return Model(net)


def inspected(model: Model) -> InspectionReport:
    return report_of(model.graph, model.placement, describe_model(model))


def test_constants_are_counted_once() -> None:
    net = Network("twice")
    weights = net.constant(np.ones((4, 2), np.float32))
    x = net.input("x", f32(4, 2))
    state = net.variable("state", f32(3))
    net.output("y", net.add(ADD, net.add(ADD, x, weights), weights))
    net.assign(state, net.add(RELU, state))
    report = inspected(Model(net))
    assert report.weights_bytes == 32
    assert report.variables_bytes == 12
    assert report.facts.operators == {"ElementwiseBinary": 2, "Activation": 1}


def test_a_model_without_shapes_has_no_placement_yet() -> None:
    report = inspected(open_model())
    assert report.placement == (
        "not known before the inputs' shapes are: give them by --shape x=SIZES; "
        "those with the same dimensions follow"
    )
    assert report.facts.programs == ()
    assert report.inputs[0].shape == (None, 2)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[Model], str]:

    def run(model: Model) -> str:
        print_model(inspected(model), with_layers=True)
        return capsys.readouterr().out

    return run


def test_a_long_name_is_not_cut_in_a_pipe(printed: Callable[[Model], str]) -> None:
    name = "layer/" * 100
    net = Network("long")
    net.output("y", net.add(RELU, net.input("x", f32(2)), name=name))
    out = printed(Model(net))
    assert name in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_a_long_name_loses_its_middle_at_a_terminal_alone(
    printed: Callable[[Model], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")
    net = Network("long")
    name = "begin/" + "n" * 300 + "/end"
    net.output("y", net.add(RELU, net.input("x", f32(2)), name=name))
    rows = re.sub(r"\x1b\[[\d;]*m", "", printed(Model(net))).splitlines()
    layers = rows[rows.index("Layers") + 2 :]
    assert any("begin/" in row for row in layers)
    assert "n/end" in "".join("".join(layers).split())
    assert "n" * 40 not in "".join("".join(layers).split())
    assert all(len(row) <= 160 for row in layers)


def test_control_characters_are_escaped() -> None:
    assert printable("a\x1b[0m\nb\u202eä") == "a\\x1b[0m\\nb\\u202eä"


def test_layers_in_graphs_are_counted_and_named_with_where_they_are() -> None:
    model = Model(loop(3), runtime_of())
    report = report_of(model.graph, model.placement, describe_model(model))
    assert report.facts.operators == {"While": 1, "Comparison": 1, "ElementwiseBinary": 1}
    assert [program.name for program in report.facts.programs] == [
        "loop",
        "loop/condition/Comparison_0",
        "loop/body/count",
    ]
    assert report.weights_bytes == 8
