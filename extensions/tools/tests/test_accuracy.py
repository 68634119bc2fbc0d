"""Accuracy and latency of a backend: the float twin, the errors, the verdict, the page."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError, UnimplementedError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    Convolution2d,
    Dequantize,
    ElementwiseUnary,
    FullyConnected,
    Quantize,
    UnaryOperation,
)
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.checkout import checkout_path
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.models.networks import f32, floats
from armpy_testing.models.tflite_writer import TfliteModel, model_with_input
from armpy_tools.accuracy import Status, run_accuracy
from armpy_tools.accuracy.engines import Engine
from armpy_tools.accuracy.expected_results import read_expected
from armpy_tools.accuracy.float_twin import float_twin
from armpy_tools.accuracy.report import EngineReport
from armpy_tools.accuracy.runner import AccuracySettings, ModelJudge, samples_of
from armpy_tools.accuracy.verdict import verdict
from armpy_tools.comparison.errors import errors

QUICK = AccuracySettings(num_samples=2, seconds=0.05)
CPU_REF = RuntimeOptions(["CpuRef"])
S8, U8, S32 = DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.SIGNED32


def quantized(shape: tuple[int, ...], scale: float, zero_point: int = 0) -> TensorInfo:
    return TensorInfo(shape, S8, Quantization((scale,), (zero_point,)))


def run_twin(graph: Graph, **feeds: object) -> list[np.ndarray]:
    with Model(float_twin(graph), Runtime(CPU_REF)) as model:
        return list(model.run(feeds).values())


def test_a_twin_of_a_matrix_product_computes_with_real_numbers() -> None:
    net = Network("products")
    x = net.input("x", quantized((1, 2), 0.5, 10))
    weights = net.constant(
        np.array([[1, 2], [-3, 4]], np.int8),
        data_type=DataType.QSYMM_S8,
        quantization=Quantization((0.1, 0.2), (0, 0), 0),
    )
    bias = net.constant(np.array([100, -100], np.int32), data_type=S32)
    layer = net.add_layer(FullyConnected(), [x, weights, bias], outputs=[quantized((1, 2), 1.0, 0)])
    net.output("y", *layer.outputs)
    # by hand: W = [[0.1, 0.2], [-0.6, 0.8]], b = [100 * 0.5 * 0.1, -100 * 0.5 * 0.2] = [5, -10]
    (y,) = run_twin(net.build(), x=np.array([[1.0, 2.0]], np.float32))
    np.testing.assert_allclose(y, [[5.5, -9.0]], rtol=1e-6)


def test_a_twin_of_a_convolution_scales_every_channel() -> None:
    net = Network("convolution")
    x = net.input("x", quantized((1, 1, 1, 1), 0.25))
    weights = net.constant(
        np.array([10, 10], np.int8).reshape(2, 1, 1, 1),
        data_type=DataType.QSYMM_S8,
        quantization=Quantization((0.1, 0.3), (0, 0), 0),
    )
    outputs = [quantized((1, 1, 1, 2), 0.5)]
    net.output("y", *net.add_layer(Convolution2d(), [x, weights], outputs=outputs).outputs)
    (y,) = run_twin(net.build(), x=np.full((1, 1, 1, 1), 2, np.float32))
    np.testing.assert_allclose(y.reshape(-1), [2.0, 6.0], rtol=1e-6)


def test_a_twin_clamps_to_what_a_tensor_can_hold_and_rounds_nothing() -> None:
    net = Network("conversions")
    x = net.input("x", f32(3))
    stored = net.add_layer(Quantize(), [x], outputs=[quantized((3,), 0.5, -28)]).outputs[0]
    net.output("y", *net.add_layer(Dequantize(), [stored], outputs=[f32(3)]).outputs)
    (y,) = run_twin(net.build(), x=floats(-60, 0.3, 100))
    np.testing.assert_allclose(y, [-50.0, 0.3, 77.5], rtol=1e-6)  # 0.5 (-128 + 28), 0.5 (127 + 28)


def test_a_model_that_keeps_state_has_no_twin() -> None:
    net = Network("state")
    x = net.input("x", f32(2))
    state = net.variable("s", f32(2))
    total = net.add(ElementwiseUnary(UnaryOperation.NEG), state)
    net.assign(state, x)
    net.output("y", total)
    with pytest.raises(UnimplementedError, match="keeps state"):
        float_twin(net.build())


def test_errors_are_those_of_all_samples() -> None:
    right = [floats(3, 4), floats(0, 0)]
    stats = errors(right, [floats(3, 5), floats(2, 0)])
    assert stats.mean_square == pytest.approx(5 / 4)
    assert stats.rms == pytest.approx(math.sqrt(5 / 4))
    assert stats.mean == pytest.approx(3 / 4)
    assert stats.largest == 2
    assert stats.relative == pytest.approx(math.sqrt(5 / 25))
    assert stats.sqnr_db == pytest.approx(10 * math.log10(25 / 5))
    assert stats.cosine == pytest.approx(29 / math.sqrt(25 * 38))
    assert stats.same_best is None
    same = errors(right, right)
    assert (same.relative, same.sqnr_db, same.cosine) == (0, math.inf, 1)


def test_what_is_no_number_on_one_side_is_infinitely_wrong() -> None:
    right = [floats(1, np.nan, np.inf)]
    assert errors(right, right).largest == 0
    wrong = errors(right, [floats(1, 2, np.inf)])
    assert wrong.largest == wrong.mean == math.inf
    assert wrong.sqnr_db == -math.inf
    assert errors(right, [floats(1, np.nan)]).relative == math.inf


def test_the_best_class_is_counted_by_sample() -> None:
    right = [np.array([[0.1, 0.9]]), np.array([[0.8, 0.2]])]
    stats = errors(right, [np.array([[0.2, 0.8]]), np.array([[0.4, 0.6]])])
    assert (stats.same_best, stats.num_rows) == (0.5, 2)


@pytest.mark.parametrize(
    ("right", "answer", "same_best", "num_rows"),
    [
        ([[0.5, 0.3, 0.2]], [[0.5, 0.5, 0.0]], 0.0, 1),  # the answer is a tie
        ([[0.3, 0.3, 0.3]], [[0.3, 0.3, 0.3]], None, 0),  # there is no best class
        ([[0.3, 0.3, 0.3], [0.1, 0.8, 0.1]], [[0.0, 0.0, 0.0], [0.0, 0.9, 0.0]], 1.0, 1),
        ([[np.nan, 0.3, 0.2]], [[np.nan, 0.3, 0.2]], 1.0, 1),
    ],
)
def test_a_tie_is_not_the_same_best_class(
    right: list[list[float]], answer: list[list[float]], same_best: float | None, num_rows: int
) -> None:
    stats = errors([np.array(right)], [np.array(answer)])
    assert (stats.same_best, stats.num_rows) == (same_best, num_rows)


@pytest.mark.slow
def test_a_sound_backend_is_as_exact_as_the_reference() -> None:
    run = run_accuracy([DIGITS], "NumbaAcc", settings=QUICK)
    (model,) = run.models
    assert run.is_passed, model.text
    assert (model.status, model.reference) == (Status.OK, "real numbers")
    assert model.num_taken == model.num_layers == 10
    ours, reference = model.engine("NumbaAcc"), model.engine("CpuRef")
    assert ours is not None
    assert reference is not None
    assert ours.latency is not None
    assert reference.latency is None
    assert ours.errors is not None
    assert reference.errors is not None
    assert 0 < reference.errors.relative < 0.2  # eight bits
    assert ours.errors.relative == pytest.approx(reference.errors.relative, rel=0.2)


@pytest.mark.slow
def test_the_peer_is_measured_where_it_is_installed() -> None:
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    (model,) = run_accuracy([DIGITS], "CpuRef", settings=QUICK).models
    peer = model.engine("LiteRT")
    assert peer is not None
    assert peer.errors is not None
    assert peer.errors.relative < 0.2
    assert peer.latency is not None


def report_of(name: str, *answer: float) -> EngineReport:
    """An engine's report on a model whose outputs are 3 and 4 in real numbers."""
    stats = errors([floats(3, 4)], [floats(*answer)])
    return EngineReport(name, errors=stats, relative_by_sample=(stats.relative,) * 8)


@pytest.mark.parametrize(
    ("own", "reference", "peer", "status", "limit"),
    [
        (4.5, 4.5, 4.1, Status.INACCURATE, "0.0251"),  # errors 0.1, 0.1 and 0.02
        (4.1, 4.5, 4.1, Status.OK, "0.0251"),
        (4.5, 4.1, 4.5, Status.INACCURATE, "0.0251"),
        (4.1, 4.1, 4.5, Status.OK, "0.0251"),
        (4.5, 4.5, math.nan, Status.OK, "0.125"),  # no number is no limit
    ],
)
def test_a_backend_less_exact_than_the_peer_does_not_pass(
    own: float, reference: float, peer: float, status: Status, limit: str
) -> None:
    reports = {
        "Mine": report_of("Mine", 3, own),
        "CpuRef": report_of("CpuRef", 3, reference),
        "LiteRT": report_of("LiteRT", 3, peer),
    }
    judged = verdict("Mine", reports, 1.25)
    assert judged.status is status
    assert (limit in judged.text) == (status is not Status.OK)
    assert f"at most {limit}" in judged.compared
    assert "of 8 samples" in judged.compared


@pytest.mark.parametrize(
    ("own", "status"),
    [
        ([0.1] * 4, Status.OK),  # of four coins all are heads in 1 of 16 trials
        ([0.1] * 5, Status.INACCURATE),  # 1 of 32
        ([0.1] * 7 + [0.01], Status.INACCURATE),  # of 8 coins 7 or more: 9 of 256
        ([0.1] * 6 + [0.01] * 2, Status.OK),  # 6 or more: 37 of 256
    ],
)
def test_the_peer_does_not_judge_by_chance(own: list[float], status: Status) -> None:
    mine = replace(report_of("Mine", 3, 4.5), relative_by_sample=tuple(own))
    reports = {
        "Mine": mine,
        "CpuRef": replace(mine, name="CpuRef"),
        "LiteRT": replace(report_of("LiteRT", 3, 4.1), relative_by_sample=(0.02,) * len(own)),
    }
    judged = verdict("Mine", reports, 1.25)
    assert judged.status is status
    assert ("not with LiteRT (0.02): it takes 5" in judged.compared) == (len(own) < 5)


def test_a_missing_peer_is_named_and_the_reference_judges_alone() -> None:
    reports = {
        "CpuRef": report_of("CpuRef", 3, 4.5),
        "LiteRT": EngineReport("LiteRT", text="LiteRT is not installed (ai-edge-litert)"),
    }
    judged = verdict("CpuRef", reports, 1.25)
    assert judged.status is Status.OK
    assert judged.compared == (
        "CpuRef (0.1): at most 0.125; not with LiteRT: LiteRT is not installed (ai-edge-litert)"
    )


def test_a_model_is_judged_by_the_peer_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The peer here gives the real numbers; CpuRef rounds them to 8 bits."""

    def exact_peer(path: Path, names: list[str], num_threads: int) -> Engine:
        return Engine("LiteRT", "1", lambda feeds: [feeds[names[0]]], lambda: None)

    monkeypatch.setattr("armpy_tools.accuracy.runner.peer_engine", exact_peer)
    path = tmp_path / "rounded.tflite"
    path.write_bytes(rounding_model())
    samples: Any = {f"{number}/in0": floats(0.26, 0.7) for number in range(5)}
    np.savez(path.with_suffix(".npz"), **samples)
    model = ModelJudge("CpuRef", CPU_REF, AccuracySettings(seconds=0))(str(path))
    assert model.status is Status.INACCURATE, model.text
    assert "LiteRT (0): at most 0.0001, or more in fewer than 5 of 5" in model.compared
    assert "by LiteRT" in model.text


def rounding_model() -> bytes:
    """A .tflite file that stores two numbers in 8 bits, in steps of 0.5, and reads them."""
    model, graph, x = model_with_input()
    stored = graph.tensor("stored", (2,), "INT8", scale=0.5, zero_point=0)
    y = graph.tensor("y", (2,), "FLOAT32")
    graph.operator("QUANTIZE", [x], [stored])
    graph.operator("DEQUANTIZE", [stored], [y])
    graph.outputs(y)
    return model.to_bytes()


def test_real_inputs_of_a_quantised_model_are_quantised(tmp_path: Path) -> None:
    path = tmp_path / DIGITS.name
    path.write_bytes(DIGITS.read_bytes())
    stored = np.arange(256, dtype=np.int16).reshape(1, 16, 16, 1) - 128
    real = (stored + 128) / 255  # its scale is 1 / 255, its zero point -128
    reports = []
    for array in (stored.astype(np.int8), real):
        arrays: Any = {"one/in0": array}
        np.savez(path.with_suffix(".npz"), **arrays)
        model = ModelJudge("CpuRef", CPU_REF, AccuracySettings(seconds=0))(str(path))
        assert model.status is not Status.FAILED, model.text
        engine = model.engine("CpuRef")
        assert engine is not None
        reports.append(engine.errors)
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.full((1, 16, 16, 1), np.nan), "sample 0 / input 'serving_default_image:0'"),
        (np.zeros((1, 8, 8, 1)), "(1, 16, 16, 1)"),
        (np.full((1, 16, 16, 1), 300), "int8"),
    ],
)
def test_inputs_that_do_not_fit_are_an_error_that_says_what_is_expected(
    tmp_path: Path, array: np.ndarray, text: str
) -> None:
    path = tmp_path / DIGITS.name
    path.write_bytes(DIGITS.read_bytes())
    arrays: Any = {"one/in0": array}
    np.savez(path.with_suffix(".npz"), **arrays)
    model = ModelJudge("CpuRef", CPU_REF, AccuracySettings(seconds=0))(str(path))
    assert model.status is Status.FAILED
    assert text in model.text
    assert "digits_int8.npz, sample 0" in model.text
    assert "armpy.load" not in model.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "status", "text"),
    [
        ("execute=wrong", Status.INACCURATE, "its relative error is"),
        ("execute=nan", Status.INACCURATE, "its relative error is inf"),
        ("execute=raise", Status.FAILED, "the device reports a failure"),
        ("execute=segfault", Status.CRASHED, "ended by SIGSEGV"),
        ("support=refuse", Status.UNSUPPORTED, "SampleFaulty runs no layer of it"),
        ("", Status.OK, ""),
    ],
)
def test_what_is_planted_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, faults: str, status: Status, text: str
) -> None:
    monkeypatch.setenv("ARMPY_SAMPLE_FAULTS", faults)
    drivers = checkout_path("backends", "dynamic_examples", "drivers")
    options = RuntimeOptions(dynamic_backends_path=drivers)
    path = tmp_path / "sum.tflite"
    path.write_bytes(sum_model())
    run = run_accuracy([path], "SampleFaulty", runtime_options=options, settings=QUICK)
    (model,) = run.models
    assert (model.status, run.is_passed) == (status, status is Status.OK)
    assert text in model.text


def sum_model(shape: tuple[int, ...] = (4,)) -> bytes:
    """A .tflite file that adds two inputs."""
    model = TfliteModel()
    graph = model.subgraph("main")
    x, y, z = (graph.tensor(name, shape, "FLOAT32") for name in "xyz")
    graph.operator("ADD", [x, y], [z])
    graph.inputs(x, y)
    graph.outputs(z)
    return model.to_bytes()


@pytest.mark.slow
def test_a_model_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARMPY_SAMPLE_FAULTS", "execute=hang")
    monkeypatch.setattr("armpy_conformance.workers._START_S", 5.0)
    drivers = checkout_path("backends", "dynamic_examples", "drivers")
    options = RuntimeOptions(dynamic_backends_path=drivers)
    path = tmp_path / "sum.tflite"
    path.write_bytes(sum_model())
    run = run_accuracy([path], "SampleFaulty", runtime_options=options, settings=QUICK, timeout_s=3)
    assert run.models[0].status is Status.CRASHED
    assert "no answer within 3 s" in run.models[0].text


def test_samples_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "model.npz"
    arrays: Any = {f"{c}/in{i}": np.full(2, i) for c in ("a", "b", "c") for i in (0, 1)}
    np.savez(file, **arrays)
    samples = samples_of(file, ["x", "y"], 2)
    assert [[array.tolist() for array in sample.values()] for sample in samples] == [
        [[0, 0], [1, 1]]
    ] * 2
    np.savez(file, x=np.zeros(3))
    assert samples_of(file, ["x"], 5)[0]["x"].shape == (3,)
    with pytest.raises(InvalidArgumentError, match="no elements for an input"):
        samples_of(file, ["y"], 1)


def recorded(tmp_path: Path, samples: dict[str, dict[str, Any]], **others: Any) -> Path:
    """The sum of two inputs of (1, 4, 3), with a file of samples beside it."""
    path = tmp_path / "sum.tflite"
    path.write_bytes(sum_model((1, 4, 3)))
    arrays = {
        f"{name}/{key}": value for name, arrays in samples.items() for key, value in arrays.items()
    }
    np.savez(path.with_suffix(".npz"), **arrays, **others)
    return path


def scores_of(path: Path, settings: AccuracySettings) -> dict[str, float]:
    (model,) = run_accuracy([path], "CpuRef", settings=settings).models
    engine = model.engine("CpuRef")
    assert engine is not None, model.text
    return dict(engine.scores)


NOTHING = np.zeros((1, 4, 3), np.float32)
HEARD = np.eye(3, dtype=np.float32)[[1, 1, 0, 2]][np.newaxis]


@pytest.mark.slow
def test_words_are_measured_against_those_of_the_file(tmp_path: Path) -> None:
    # Heard is "yes no" both times. Edits by hand: none of 2 words, and 2 of 3 words.
    samples: dict[str, dict[str, Any]] = {
        "a": {"in0": HEARD, "in1": NOTHING, "words": "yes no"},
        "b": {"in0": HEARD, "in1": NOTHING, "words": "oh yes yes"},
    }
    path = recorded(tmp_path, samples, labels=["<blank>", "yes", "no"])
    assert scores_of(path, AccuracySettings(seconds=0)) == {"word error rate": pytest.approx(2 / 5)}


@pytest.mark.slow
def test_cepstra_classes_and_elements_are_measured_against_those_of_the_file(
    tmp_path: Path,
) -> None:
    cepstra = HEARD + np.array([7, 3, 4], np.float32)  # 5 apart in each frame without the first
    scores = NOTHING.copy()
    scores[0, 1] = 6, 5, 4
    samples: dict[str, dict[str, Any]] = {
        "a": {"in0": HEARD, "in1": NOTHING, "cepstra": cepstra, "out0": HEARD * 1.25},
        "b": {"in0": NOTHING, "in1": scores, "class": 3},
        "c": {"in0": NOTHING, "in1": scores, "class": 4},
        "d": {"in0": NOTHING, "in1": scores, "class": 11},
    }
    path = recorded(tmp_path, samples)
    assert scores_of(path, AccuracySettings(seconds=0)) == {
        "top-1 accuracy": pytest.approx(1 / 3),
        "top-5 accuracy": pytest.approx(2 / 3),
        "mel-cepstral distortion, dB": pytest.approx(5 * 6.141851463713754),
        "relative error": pytest.approx(0.2),
    }
    assert scores_of(path, AccuracySettings(2, seconds=0))["top-1 accuracy"] == 1


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"words": "yes"}, "scores of unknown labels"),
        ({"class": 12}, "an integer from 0 to 11"),
        ({"class": 0.5}, "an integer from 0 to 11"),
        ({"cepstra": NOTHING[:, 1:]}, "coefficients cannot be compared"),
    ],
)
def test_expected_results_that_cannot_be_used_are_an_error(
    result: dict[str, Any], text: str, tmp_path: Path
) -> None:
    path = recorded(tmp_path, {"a": {"in0": HEARD, "in1": NOTHING, **result}})
    with pytest.raises(InvalidArgumentError, match=text):
        read_expected(path.with_suffix(".npz")).scores([[HEARD]])


@pytest.mark.slow
def test_the_command_and_its_page_show_scores_of_expected_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("click")
    from armpy_testing.command_line import armpy_command

    path = recorded(tmp_path, {"a": {"in0": HEARD, "in1": NOTHING, "class": 1}})
    page = tmp_path / "page.html"
    command = ["conformance", "accuracy", str(path.parent), "--backend", "CpuRef", "--seconds", "0"]
    assert armpy_command([*command, "--html", str(page)]) == 0
    assert re.search(r"CpuRef +top-1 accuracy +1\b", capsys.readouterr().out)
    assert "Against expected results" in page.read_text("utf-8")


@pytest.mark.slow
def test_the_command_prints_a_table_json_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("click")
    from armpy_testing.command_line import armpy_command

    page = tmp_path / "page.html"
    command = ["conformance", "accuracy", str(DIGITS), "--backend", "CpuRef", "--seconds", "0"]
    assert armpy_command([*command, "--html", str(page)]) == 0
    assert "digits_int8.tflite  OK" in capsys.readouterr().out
    assert "Accuracy and latency of CpuRef" in page.read_text("utf-8")
    assert armpy_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["models"][0]["status"] == "OK"
    assert document["models"][0]["engines"][0]["errors"]["relative"] > 0
