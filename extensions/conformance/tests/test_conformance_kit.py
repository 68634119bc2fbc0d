"""CpuRef passes; every way of being wrong is found and named."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import ops
from armpy.backend import (
    ILayerSupport,
    OptimizationViews,
    PreparationRequest,
)
from armpy.errors import BackendError, BackendUnavailableError, InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy.graph import SubgraphView
from armpy.graph.network import Network
from armpy.ops import Activation, BinaryOperation, ElementwiseBinary
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import Outcome, Pattern, run_conformance
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.crash.scene import Scene
from armpy_conformance.patterns import judge_pattern
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    registry_of,
)
from armpy_testing.backends.lying_backends import (
    WeightedRelu,
    write_liar,
)
from armpy_testing.effort import effort, part_of_kit
from armpy_testing.models.networks import chain

from .declaring_backend import Declaring, exponential_pattern
from .kit_runs import options_for, run, run_one
from .planted.answers import Pairs
from .planted.shapes import Fused


@pytest.mark.slow
def test_cpu_ref_passes_every_case() -> None:
    result = run_conformance("CpuRef")
    assert result.problems == ()
    refused = {r.operation for r in result.results if r.outcome is Outcome.UNSUPPORTED}
    assert refused == {"If", "While"}  # the core takes them
    answered = [r for r in result.results if r.outcome is Outcome.ELSEWHERE]
    # Folded, or taken out, by the core; among pairs of attributes are some that change nothing.
    elsewhere = {r.operation for r in answered if "/pairs-" not in r.case}
    assert elsewhere == {"Rank", "Shape", "Range", "Reduce"}
    assert len(answered) < result.counts["passed"] / 50
    assert result.counts["passed"] > 2000
    assert result.layers_run > result.counts["passed"]
    assert (result.exercised, result.shortcomings) == (1.0, ())
    assert result.is_passed


def test_cases_passed_by_a_backend_differ_from_those_answered_by_the_core() -> None:
    result_of_run = run(FakeBackend("Ranks", (ops.Rank,)), "Rank/scalar/float32-")
    (result,) = result_of_run.results
    assert result.outcome is Outcome.ELSEWHERE
    assert result.text == "the core gave the answer without asking a backend"
    assert result_of_run.counts["passed"] == 0


def test_a_run_in_which_no_layer_ran_on_the_backend_fails() -> None:
    for filter in ("Rank/", "Conv"):
        result = run(FakeBackend("Nothing", ()), filter)
        assert result.problems == ()
        assert result.shortcomings == ("no layer ran on Nothing: this proves nothing about it",)
        assert not result.is_passed
        assert result.coverage == "layers run on Nothing: 0"


def test_a_layer_that_does_nothing_may_be_taken_out_and_did_not_run() -> None:
    class TakesOut(FakeBackend):
        def optimize_subgraph_view(
            self, view: SubgraphView, request: PreparationRequest
        ) -> OptimizationViews:
            return OptimizationViews(deleted=[view])

    result = run_one(TakesOut("Tidy"), "Activation/relu/float32")
    assert result.outcome is Outcome.FAILED  # it did something
    nothing = Pattern("nothing", doing_nothing())
    result = judge_pattern(
        BackendUnderTest("Tidy", options_for(TakesOut("Tidy"))), "nothing", nothing
    )
    assert (result.outcome, result.ran) == (Outcome.ELSEWHERE, ())


def doing_nothing() -> Network:
    """A network that takes the larger of a value and itself."""
    net = Network("nothing")
    x = net.input("x", TensorInfo((3,), DataType.FLOAT32))
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.MAXIMUM), x, x))
    return net


@pytest.mark.slow
def test_a_layer_given_back_alone_is_tried_with_neighbours() -> None:
    parts = part_of_kit("contract/graphs", "Activation/relu", "ElementwiseBinary/add")
    result = run(Pairs(), parts)
    assert result.problems == ()
    assert result.shortcomings == ()
    assert result.exercised == 1.0
    texts = {r.text for r in result.results if r.case == "ElementwiseBinary/add/float32"}
    assert all(text.endswith(" after, as it was given back alone") for text in texts)
    assert result.counts["passed"] > effort(20)
    chained = [r for r in result.results if r.case == "contract/graphs/two-layers"]
    assert [r.outcome for r in chained] == [Outcome.PASSED]


def test_a_backend_that_takes_pairs_alone_is_judged_by_patterns() -> None:
    result = run(WeightedRelu("Pairs"), "pattern/dense-relu/float32")
    (case,) = result.results
    assert (case.outcome, case.text) == (Outcome.PASSED, "2 of 2 layers")
    result = run(WeightedRelu("Liar", is_wrong=True), "pattern/dense-relu/float32")
    (case,) = result.results
    assert case.outcome is Outcome.FAILED
    assert "Liar / dense-relu/float32: the output 'y'" in case.text


def test_crash_networks_are_chosen_by_all_of_their_layers(tmp_path: Path) -> None:
    scene = Scene("Liar", write_liar(tmp_path, "lying_backends.WeightedRelu()"), "", 0)
    assert scene.networks() == ["classifier/FLOAT32"]


def test_of_a_pattern_some_layers_may_run_elsewhere() -> None:
    run_result = run(FakeBackend("Some", (Activation,)), "pattern/dense-relu/float32")
    (result,) = run_result.results
    assert (result.outcome, result.text) == (Outcome.PASSED, "1 of 2 layers")
    assert result.ran == ("Activation FLOAT32",)


@pytest.mark.slow
def test_what_a_backend_declares_has_to_run_and_excuses_what_it_gives_back() -> None:
    parts = part_of_kit("ElementwiseUnary/", "pattern/", "declared/")
    result = run(Declaring("Declaring"), parts)
    assert result.problems == ()
    (declared,) = (r for r in result.results if r.case == "declared/logarithm")
    assert (declared.outcome, declared.text) == (Outcome.PASSED, "2 of 2 layers")
    alone = [r for r in result.results if r.case == "ElementwiseUnary/exp/float32"]
    assert [r.outcome for r in alone] == [Outcome.ELSEWHERE]
    assert alone[0].text == "given back: single layers are not worth it"
    # Of float16 it has shown nothing.
    assert any("ElementwiseUnary FLOAT16, and ran none" in text for text in result.shortcomings)


def test_a_declared_pattern_that_does_not_run_fails_with_its_name() -> None:
    run_result = run(Declaring("Liar", [exponential_pattern(3)]), "declared/")
    (result,) = run_result.problems
    assert result.case == "declared/logarithm"
    assert "Liar / logarithm: " in result.text
    assert "single layers are not worth it" in result.text


@pytest.mark.parametrize("patterns", [7, ["a name"], [exponential_pattern()] * 2])
def test_a_declaration_that_cannot_be_read_is_an_error(patterns: object) -> None:
    with pytest.raises(BackendError, match="Liar / conformance_patterns"):
        run(Declaring("Liar", patterns), "declared/")


def test_a_filter_that_selects_nothing_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="no case is selected"):
        run_conformance("CpuRef", filter="no such case")


@pytest.mark.slow
def test_cases_for_other_processes_are_not_made_in_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def not_here() -> NoReturn:
        raise AssertionError("making all cases takes seconds")

    monkeypatch.setattr("armpy_conformance.conformance.all_cases", not_here)
    result = run_conformance("CpuRef", filter="Rank/", jobs=1)
    assert {r.outcome for r in result.results} == {Outcome.ELSEWHERE}


def test_a_backend_that_is_not_there_is_an_error() -> None:
    with pytest.raises(BackendUnavailableError, match="there is no backend 'Missing'"):
        run_conformance("Missing", filter="Rank/")


def test_what_a_pattern_expects_is_held_against_cpu_ref() -> None:
    pattern = exponential_pattern()
    (name,) = pattern.graph.output_names
    shape = pattern.graph.outputs[0].info.known_shape
    wrong = replace(pattern, expected={name: np.full(shape, 7, np.float32)})
    result = run(Declaring("Liar", [wrong]), "declared/")
    (problem,) = result.problems
    assert f"the pattern expects another output '{name}' than CpuRef" in problem.text


def test_the_kit_judges_the_compiler_and_not_what_it_has_made_before() -> None:
    class Counting(Fused):
        num_compiled = 0

        def optimize_subgraph_view(
            self, view: SubgraphView, request: PreparationRequest
        ) -> OptimizationViews:
            self.num_compiled += 1
            return super().optimize_subgraph_view(view, request)

    backend = Counting()
    assert run_one(backend).outcome is Outcome.PASSED
    num_compiled = backend.num_compiled
    assert run_one(backend).outcome is Outcome.PASSED
    assert backend.num_compiled > num_compiled


def test_answers_about_one_network_are_kept_at_a_time() -> None:
    """An engine's layer support keeps what it has compiled, and the kit asks about thousands."""
    made: list[weakref.ref[ILayerSupport]] = []

    class Watched(ReferenceBackend):
        def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
            support = super().get_layer_support(request)
            made.append(weakref.ref(support))
            return support

    backend = Watched()
    subject = BackendUnderTest(backend.get_id(), RuntimeOptions(registry=registry_of(backend)))
    assert all(subject.supports(chain()).values())
    first = list(made)
    assert all(reference() for reference in first)
    assert all(subject.supports(chain()).values())
    gc.collect()
    assert first
    assert not any(reference() for reference in first)
