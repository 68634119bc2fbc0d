from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy import DataType, Model, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.core.units import time_text
from armpy.errors import InvalidArgumentError
from armpy.inspect import LayerFacts, LayerStatus, ModelFacts, TensorFacts
from armpy.model import ModelOrigin
from armpy.ops.operation import Array, Operation
from armpy.plugins.hooks.model_file import open_model_file
from armpy.plugins.hooks.outline import FileOutline
from armpy.profiling import Share, Summary
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.lying_backends import Tampering
from armpy_testing.digits import MODEL as DIGITS
from armpy_tools.pages import (
    Bars,
    Details,
    Facts,
    GraphView,
    Headline,
    Headlines,
    Lines,
    Section,
    Stack,
    Table,
    Text,
)
from armpy_tools.report import ReportSubject, make_report
from armpy_tools.report.accuracy_parts import float_errors
from armpy_tools.report.graph_part import graph_part
from armpy_tools.report.headlines import (
    speed_headline,
    verdict,
)
from armpy_tools.report.layers import LayerRows
from armpy_tools.report.memory_parts import needed_bytes
from armpy_tools.report.run_times import RunTimes
from armpy_tools.report.time_parts import kind_stack, time_parts


def profiled(path: Path, **options: object) -> Model:
    return armpy.load(path, runtime=Runtime(RuntimeOptions(profiling=True, **options)))  # type: ignore[arg-type]  # by name


def zeros(model: Model) -> dict[str, Array]:
    return {
        spec.name: np.zeros([dim or 1 for dim in spec.shape or ()], spec.data_type.dtype)
        for spec in model.inputs
    }


def outline() -> FileOutline | None:
    with armpy.load(DIGITS, backends=["CpuRef"]) as model:
        registry = model.runtime.registry
        return ModelOrigin.find(open_model_file(DIGITS), str(DIGITS), registry).outline()


Sections: TypeAlias = Sequence[Section]


def parts_of(sections: Sections, title: str, kind: type) -> list[object]:
    section = next(section for section in sections if section.title == title)
    return [part for part in section.parts if isinstance(part, kind)]


def digits_report(model: Model, **options: Any) -> Sections:
    subject = ReportSubject(model, "digits", zeros(model), outline=outline())
    return make_report(subject, num_runs=3, **options)


@pytest.fixture(scope="module")
def sections() -> Iterator[Sections]:
    with profiled(DIGITS, backends=["CpuRef"]) as model:
        yield digits_report(model)


def test_the_graph_holds_layers_inputs_and_outputs(sections: Sections) -> None:
    (view,) = parts_of(sections, "Graph", GraphView)
    assert isinstance(view, GraphView)
    with armpy.load(DIGITS, backends=["CpuRef"]) as model:
        assert len(view.nodes) == len(model.graph.layers) + 2
    assert view.nodes[0].subtitle.startswith("input")
    assert view.nodes[-1].subtitle.startswith("output")
    assert {edge.source for edge in view.edges} == set(range(len(view.nodes) - 1))


def test_the_table_of_layers_names_their_backend(sections: Sections) -> None:
    (details,) = parts_of(sections, "Time", Details)
    assert isinstance(details, Details)
    (layers,) = details.parts
    assert isinstance(layers, Table)
    backend = layers.columns.index("backend")
    assert {row[backend] for row in layers.rows} == {"CpuRef"}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_bars_of_time_add_up_to_the_whole(sections: Sections, number: int) -> None:
    facts = parts_of(sections, "Time", Facts)[0]
    bars = parts_of(sections, "Time", Bars)[number]
    assert isinstance(bars, Bars)
    assert isinstance(facts, Facts)
    shares = [float(bar.text.rpartition(",")[2].rstrip(" %")) for bar in bars.bars]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    stack = parts_of(sections, "Overview", Stack)[0]
    assert isinstance(stack, Stack)
    assert sum(bar.value for bar in bars.bars) == pytest.approx(stack.whole)


def test_bars_of_loading_add_up_to_the_whole(sections: Sections) -> None:
    (bars,) = parts_of(sections, "Loading", Bars)
    assert isinstance(bars, Bars)
    shares = [float(bar.text.rpartition(",")[2].rstrip(" %")) for bar in bars.bars]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))


def test_refusals_are_reported_with_their_reasons() -> None:
    backend = FakeBackend("Picky", operations=(ops.Softmax,))
    registry = registry_of(backend, ReferenceBackend())
    with profiled(DIGITS, registry=registry, backends=["Picky", "CpuRef"]) as model:
        report = make_report(
            ReportSubject(model, "digits", zeros(model), outline=outline()),
            num_runs=1,
            with_accuracy=False,
        )
        assert model.placement is not None
        expected = {r.text for r in model.placement.refusals}
    (table,) = parts_of(report, "Placement", Table)
    assert isinstance(table, Table)
    assert expected
    assert {row[3] for row in table.rows} == expected
    assert {row[1] for row in table.rows} > {"CONV_2D"}
    assert {row[2] for row in table.rows} == {"Picky"}
    (view,) = parts_of(report, "Graph", GraphView)
    assert isinstance(view, GraphView)
    fact_names = [name for node in view.nodes for name, _ in node.facts]
    assert "refused by Picky" in fact_names


def adds_ten(operation: Operation, _: list[Array], outputs: list[Array]) -> None:
    if isinstance(operation, ops.FullyConnected):
        outputs[0].flat[3] += np.asarray(10, outputs[0].dtype)


def test_a_wrong_layer_stands_out_by_itself_and_in_all_after_it() -> None:
    registry = registry_of(Tampering(adds_ten, None), ReferenceBackend())
    with profiled(DIGITS, registry=registry, backends=["Liar", "CpuRef"]) as model:
        report_sections = make_report(ReportSubject(model, "digits", zeros(model)), num_runs=1)
        layers = model.graph.layers
    verdict = parts_of(report_sections, "Accuracy", Text)[1]
    assert isinstance(verdict, Text)
    assert verdict.kind == "bad"
    (chart,) = parts_of(report_sections, "Accuracy", Lines)
    assert isinstance(chart, Lines)
    alone, together = (list(series.ys) for series in chart.series)
    wrong = [n for n, layer in enumerate(layers) if layer.operation.name == "FullyConnected"]
    assert [number for number, error in enumerate(alone) if error] == wrong
    assert all(error == 0 for error in together[: wrong[0]])
    assert together[wrong[0]] > 0


def test_tensors_count_from_their_writer_to_their_last_reader() -> None:
    net = Network()
    x = net.input("x", TensorInfo((4,), DataType.FLOAT32))
    a = net.add(ops.ElementwiseUnary(ops.UnaryOperation.ABS), x, name="a")
    b = net.add(ops.ElementwiseUnary(ops.UnaryOperation.NEG), a, name="b")
    c = net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), a, b, name="c")
    net.output("y", c)
    assert needed_bytes(net.build()) == [32, 32, 48]


def layer(index: int, name: str, inside: str = "", operator: str = "ADD") -> LayerFacts:
    return LayerFacts(index, operator, name, inside, (), (), (1,), "FLOAT32")


def test_a_measured_name_stands_for_its_parts_or_what_it_lies_in() -> None:
    layers = (layer(0, "a"), layer(1, "b"), layer(2, "loop"), layer(3, "sum", "loop/body"))
    known = LayerRows(ModelFacts(0, 0, 0, 0, 0, {}, {}, "", layers, (), (), (), (), True))

    def found(name: str) -> list[str]:
        return [row.facts.name for row in known.members(name)]

    assert found("a") == ["a"]
    assert found("a + b") == ["a", "b"]
    assert found("loop/body/sum") == ["sum"]
    assert found("loop/body/other") == ["loop"]
    assert found("a + z") == []


def test_a_layer_of_the_network_has_the_name_of_the_file_s() -> None:
    parts = ("net/conv/Transpose", "net/conv/Convolution2d")
    layers = (
        replace(layer(0, "net/conv", operator="Conv"), layer_names=parts),
        replace(layer(1, "net/act", operator="Relu"), layer_names=("net/act/Activation",)),
        layer(2, "net/x;net/y/BiasAdd;net/y/MatMul", operator="FULLY_CONNECTED"),
    )
    known = LayerRows(ModelFacts(0, 0, 0, 0, 0, {}, {}, "", layers, (), (), (), (), True))
    assert known.name("net/conv/Transpose", "Transpose") == ("Conv", "conv/Transpose")
    assert known.name("net/act/Activation", "Activation") == ("Relu", "act")
    long = "net/x;net/y/BiasAdd;net/y/MatMul"
    assert known.name(long, "FullyConnected") == ("FULLY_CONNECTED", known.rows[2].short)
    assert known.name("other", "Softmax") == ("Softmax", "other")


def test_fused_layers_share_their_time_with_the_others_named() -> None:
    layers = (layer(0, "a"), layer(1, "b", operator="CONV_2D"), layer(2, "c"))
    known = LayerRows(ModelFacts(0, 0, 0, 0, 0, {}, {}, "", layers, (), (), (), (), True))
    share = Share("Convolution2d 'b + a'", "A", "Convolution2d", "b + a", 2, 8000)
    known.add_times(RunTimes(Summary(2, 8000, 8000, (share,), (), (), (), (), (), 0)))
    assert [(row.time_us, row.company) for row in known.rows] == [
        (4.0, ("b",)),
        (4.0, ("a",)),
        (None, ()),
    ]
    assert known.kind(share) == "CONV_2D + ADD"


def answers_of(sections: Sections) -> dict[str, Headline]:
    (headlines,) = parts_of(sections, "Overview", Headlines)
    assert isinstance(headlines, Headlines)
    return {answer.question: answer for answer in headlines.headlines}


def test_the_first_screen_answers_four_questions(sections: Sections) -> None:
    answers = answers_of(sections)
    assert list(answers) == ["How fast?", "Where did it run?", "How big?", "How exact?"]
    of_runs = ("median of 3 runs", "every part at its shortest in 3 runs")  # on a busy machine
    assert answers["How fast?"].figures[0][1] in of_runs
    assert answers["Where did it run?"].figures == [("CpuRef", "100 % of the time in layers")]
    assert list(answers["Where did it run?"].lines) == ["no layer fell back"]
    assert answers["How exact?"].figures[0][0] == "reference"


def test_a_model_is_compared_with_the_float_model() -> None:
    with profiled(DIGITS, backends=["CpuRef"]) as model:
        with armpy.load(DIGITS, backends=["CpuRef"]) as same:
            subject = ReportSubject(
                model, "digits", zeros(model), float_model=same, float_name="float.tflite"
            )
            report_sections = make_report(subject, num_runs=1)
        figures = answers_of(report_sections)["How exact?"].figures
        assert figures[0] == (
            "equal",
            "the outputs identical to float.tflite's, element by element (one set of inputs)",
        )
        (table,) = parts_of(report_sections, "Accuracy", Table)
        assert isinstance(table, Table)
        assert table.rows[0][0] == "0"
        net = Network()
        x = net.input("x", TensorInfo((4,), DataType.FLOAT32))
        y = net.input("y", TensorInfo((4,), DataType.FLOAT32))
        net.output("z", net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), x, y))
        with (
            Model(net, runtime=Runtime(RuntimeOptions(backends=["CpuRef"]))) as other,
            pytest.raises(InvalidArgumentError, match=r"\(1, 10\); got \(4,\), \(4,\) to"),
        ):
            float_errors(model, zeros(model), other)


def test_layers_that_ran_as_one_are_one_node_with_their_time_and_edges() -> None:
    def of(index: int, name: str, inputs: tuple[int, ...], operator: str) -> LayerFacts:
        status = LayerStatus.RUNS
        return LayerFacts(
            index, operator, name, "", inputs, (index + 1,), (1,), "INT8", status=status
        )

    layers = (
        of(0, "a", (0,), "CONV_2D"),
        of(1, "b", (1,), "CONV_2D"),
        of(2, "c", (2, 1), "ADD"),
    )
    ends = [(None, (0,)), (0, (1, 2)), (1, (2,)), (2, ())]
    tensors = tuple(
        TensorFacts(n, f"t{n}", "", (1,), "INT8", "", 1, (0.5,), (3,), None, *end)
        for n, end in enumerate(ends)
    )
    facts = ModelFacts(0, 0, 0, 0, 0, {}, {}, "", layers, tensors, (), (0,), (3,), True)
    known = LayerRows(facts)
    share = Share("b + c", "A", "Convolution2d", "b + c", 3, 6000, run_ns=[1000, 2000, 3000])
    ran = (3000, 4000, 5000)
    known.add_times(RunTimes(Summary(3, 6000, 6000, (share,), (), (), (), (), (), 0, run_ns=ran)))
    view = graph_part(facts, known.rows)
    assert [node.title for node in view.nodes] == ["t0", "a", "b", "t3"]
    fused = view.nodes[2]
    assert fused.subtitle == "CONV_2D + ADD 1"
    assert dict(fused.facts)["time"] == "2.00 µs"
    assert dict(fused.facts)["half of the runs"] == "1.50 µs to 2.50 µs"
    assert dict(fused.facts)["quantisation"] == "scale 0.5, zero point 3"
    assert [(edge.source, edge.target) for edge in view.edges] == [(0, 1), (1, 2), (2, 3)]
    assert view.colourings[0].name == "time"
    assert list(view.colourings[0].amounts) == [None, None, 2.0, None]


def summary_of(runs: int) -> Summary:
    layer_share = Share("Add 'a'", "A", "Add", "a", runs, 0, run_ns=[2100] * runs)
    around = Share("around layers", run_ns=[7900] * runs)
    ends = (9000, *[10_000] * (runs - 2), 11_000)
    return Summary(runs, 0, 0, (layer_share,), (), (around,), (), (), (), 0, run_ns=ends)


def rows_of(*layers: LayerFacts) -> LayerRows:
    return LayerRows(ModelFacts(0, 0, 0, 0, 0, {}, {}, "", layers, (), (), (), (), True))


def test_the_share_around_layers_is_that_of_the_bar() -> None:
    times = RunTimes(summary_of(10))
    headline = speed_headline(times)
    assert list(headline.lines[:2]) == [
        "half of the runs take 10.0 µs to 10.0 µs",
        "79 % of a run is overhead around layers",
    ]
    stack = kind_stack(times, rows_of(layer(0, "a")))
    assert stack.caption == "Where the time of a run goes (10.0 µs)"
    assert [(bar.name, bar.is_grey) for bar in stack.parts] == [
        ("around layers", True),
        ("ADD", False),
    ]
    assert [colour for _, colour, _, _ in stack.slices] == ["g0", "c0"]


def disturbed_summary() -> Summary:
    """Four runs of two layers, of which every run but the first is disturbed in some part."""
    slow = Share("Add 'a'", "A", "Add", "a", 4, 0, run_ns=[2000, 2000, 9000, 2000])
    quick = Share("Mul 'b'", "A", "Mul", "b", 4, 0, run_ns=[1000, 5000, 1000, 6000])
    around = Share("around layers", run_ns=[500, 500, 500])  # the last run had none
    runs = (3500, 7500, 10_500, 8000)
    return Summary(4, 29_500, 0, (slow, quick), (), (around,), (), (), (), 0, run_ns=runs)


@pytest.mark.parametrize(
    ("is_busy", "whole_us", "basis"),
    [
        (False, 7.75, "mean of the middle 2 of 4 runs"),  # the second and the last one
        (True, 3.0, "every part at its shortest in 4 runs"),
    ],
)
def test_headline_strip_and_bars_have_one_time(is_busy: bool, whole_us: float, basis: str) -> None:
    times = RunTimes(disturbed_summary(), is_busy)
    known = rows_of(layer(0, "a", operator="ADD"), layer(1, "b", operator="MUL"))
    known.add_times(times)
    text = time_text(whole_us)
    assert speed_headline(times).figures == [(text, basis)]
    stack = kind_stack(times, known)
    assert stack.whole == pytest.approx(whole_us)
    assert text in stack.caption
    facts, by_kind, by_layer, *_ = time_parts(times, known)
    assert isinstance(facts, Facts)
    assert dict(facts.facts)["a run"] == f"{text}, {basis}"
    for bars in (by_kind, by_layer):
        assert isinstance(bars, Bars)
        assert sum(bar.value for bar in bars.bars) == pytest.approx(whole_us)


def test_the_verdict_names_the_roofline_and_what_takes_the_time() -> None:
    known = rows_of(layer(0, "a", operator="ADD"), layer(1, "b", operator="MUL"))
    summary = disturbed_summary()
    assert verdict(RunTimes(summary), known) == "A run takes 7.75 µs; MUL takes 71 % of it."
    for share in summary.layers:  # of four runs together
        share.details.update({"compute_us": 2.0, "memory_us": 3.0})
    text = (
        "A run takes 3.00 µs, 2.0 times the least that the machine needs (roofline); "
        "ADD takes 67 % of it."
    )
    assert verdict(RunTimes(summary, is_busy=True), known) == text
