"""Random NNAPI models: every operation can be made up, CpuRef agrees with itself, liars do not.

A failure names the number of the model, which always gives the same one.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armpy.execution import RuntimeOptions
from armpy_conformance.result import Outcome
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs import run_random_graphs
from armpy_nnapi.conformance.random_graphs.generator import RandomModel, random_model
from armpy_nnapi.conformance.random_graphs.making import random_call
from armpy_nnapi.conformance.random_graphs.recipes import recipes
from armpy_nnapi.conformance.random_graphs.runner import run_model
from armpy_nnapi.conformance.random_graphs.zero_sized import zero_sized_model
from armpy_nnapi.conformance.vectors import run_vectors
from armpy_nnapi.conformance.vectors.example import read_file
from armpy_nnapi.description.model_description import Lifetime
from armpy_nnapi.devices import DeviceManager
from armpy_nnapi.operations import definitions
from armpy_nnapi.validation.validate_model import validate_model
from armpy_testing.backends.lying_backends import write_liar
from armpy_testing.effort import effort

pytestmark = pytest.mark.slow

COUNT = effort(150)
FEW = range(150)

NOT_RUNNABLE = {(OperationCode.DIV, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED)}
"""What NNAPI's validation accepts and its execution refuses."""

WRONG_MAXIMA = "Tampering(lying_backends.wrong_maxima, None)"


@pytest.fixture
def manager() -> Iterator[DeviceManager]:
    with DeviceManager(RuntimeOptions(backends=["CpuRef"])) as reference:
        yield reference


def runs(manager: DeviceManager, model: RandomModel) -> list[np.ndarray]:
    device = manager.get_device_of_backend("CpuRef")
    return run_model(manager, device, model.description, model.inputs)


def test_every_definition_has_a_recipe() -> None:
    assert set(recipes()) == set(definitions())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("code", definitions(), ids=lambda code: code.name)
def test_every_signature_can_be_made_up(code: OperationCode) -> None:
    definition = definitions()[code]
    random = np.random.default_rng(code)
    for form, row in definition.signatures():
        if (code, row.types.get("T")) not in NOT_RUNNABLE:
            call = random_call(random, definition, form, row)
            assert call is not None, f"{form.input_names} with {row.types}"


def test_most_proposals_of_every_recipe_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armpy_nnapi.conformance.random_graphs.making._TRIES", 1)
    random = np.random.default_rng(0)
    refused: dict[str, int] = {}
    for code, definition in definitions().items():
        for form, row in definition.signatures():
            if (code, row.types.get("T")) not in NOT_RUNNABLE:
                calls = [random_call(random, definition, form, row) for _ in range(3)]
                refused[definition.name] = refused.get(definition.name, 0) + calls.count(None)
    assert {name: count for name, count in refused.items() if count > 1} == {}


@pytest.mark.parametrize("seed", [0, 1, 77, 1 << 40])
def test_a_seed_always_gives_the_same_model(seed: int) -> None:
    first, second = random_model(seed), random_model(seed)
    assert first.description == second.description
    for array, other in zip(first.inputs, second.inputs, strict=True):
        np.testing.assert_array_equal(array, other)


def test_another_seed_gives_another_model() -> None:
    assert len({repr(random_model(seed).description) for seed in FEW}) == len(FEW)


def test_models_are_valid_and_cover_what_models_can_have() -> None:
    models = [random_model(seed).description for seed in FEW]
    for description in models:
        validate_model(description)
    graphs = [description.main for description in models]
    operands = [operand for graph in graphs for operand in graph.operands]
    codes = {node.type for graph in graphs for node in graph.operations}
    assert {OperationCode.IF, OperationCode.WHILE} < codes
    assert len(codes) > 90
    assert {operand.lifetime for operand in operands} >= {
        Lifetime.SUBGRAPH_INPUT,
        Lifetime.CONSTANT_COPY,
        Lifetime.NO_VALUE,
        Lifetime.TEMPORARY_VARIABLE,
        Lifetime.SUBGRAPH,
    }
    assert any(operand.channel_quant for operand in operands)
    assert any(not o.is_tensor and o.lifetime is Lifetime.SUBGRAPH_INPUT for o in operands)
    assert any(0 in o.dimensions for o in operands)
    assert max(len(graph.operations) for graph in graphs) == 20


def test_models_run_on_the_reference(manager: DeviceManager) -> None:
    for seed in FEW:
        model = random_model(seed)
        assert len(runs(manager, model)) == len(model.description.main.outputs)


def test_models_with_tensors_without_elements_run(manager: DeviceManager) -> None:
    empty = 0
    for seed in range(60):
        model = RandomModel(seed, *zero_sized_model(np.random.default_rng(seed)))
        empty += sum(not output.size for output in runs(manager, model))
    assert empty > 50


@pytest.mark.slow
def test_the_reference_agrees_with_itself() -> None:
    result = run_random_graphs("CpuRef", COUNT, seed=0)
    assert [f"{problem.case}: {problem.text}" for problem in result.problems] == []
    elsewhere = result.counts["answered elsewhere"]
    assert result.counts["passed"] + elsewhere == COUNT
    assert elsewhere < COUNT / 20
    assert result.exercised == 1.0


def test_a_wrong_operation_is_found_and_kept_alone(tmp_path: Path) -> None:
    options = write_liar(tmp_path / "liars", WRONG_MAXIMA)
    folder = tmp_path / "kept"
    result = run_random_graphs("Liar", 30, runtime_options=options, folder=folder)
    assert result.problems
    assert all("Smallest part: MAXIMUM" in problem.text for problem in result.problems)
    files = sorted(folder.iterdir())
    assert len(files) == len(result.problems)
    for path in files:
        (example,) = read_file(path)
        (node,) = example.model.main.operations
        assert node.type == OperationCode.MAXIMUM
    again = run_vectors(folder, "Liar", runtime_options=options)
    assert set(again.by_example.values()) == {Outcome.FAILED}
    assert set(run_vectors(folder, "CpuRef").by_example.values()) == {Outcome.PASSED}


def test_an_operation_that_ends_its_process_is_kept(tmp_path: Path) -> None:
    options = write_liar(tmp_path / "liars", "Tampering(lying_backends.ends_at_maxima, None)")
    seed = next(seed for seed in range(100) if uses(random_model(seed), OperationCode.MAXIMUM))
    result = run_random_graphs("Liar", 1, seed=seed, runtime_options=options, folder=tmp_path)
    (problem,) = result.problems
    assert problem.outcome is Outcome.CRASHED
    assert "code 3" in problem.text
    assert (tmp_path / f"random_{seed}.json.gz").exists()


def uses(model: RandomModel, code: OperationCode) -> bool:
    return any(node.type == code for node in model.description.main.operations)


def test_models_of_which_no_operation_is_taken_are_unsupported(tmp_path: Path) -> None:
    options = write_liar(tmp_path / "liars", "Tampering(lying_backends.wrong_maxima, ())")
    result = run_random_graphs("Liar", 20, runtime_options=options)
    assert not result.problems
    unsupported = [r for r in result.results if r.outcome is Outcome.UNSUPPORTED]
    assert len(unsupported) > 15
    assert all("Liar does not take" in r.text for r in unsupported)


def test_models_of_which_the_backend_gives_all_back_prove_nothing(tmp_path: Path) -> None:
    options = write_liar(tmp_path / "liars", 'lying_backends.GivesBack("Liar")')
    result = run_random_graphs("Liar", 20, runtime_options=options)
    assert result.counts["passed"] == 0
    assert result.counts["answered elsewhere"] > 15
    assert result.exercised == 0
    assert result.shortcomings == ("no layer ran on Liar: this proves nothing about it",)
    assert not result.is_passed


def test_a_backend_that_compiles_pairs_is_judged_by_them(tmp_path: Path) -> None:
    honest = write_liar(tmp_path / "honest", 'lying_backends.Pairs("Liar")')
    result = run_random_graphs("Liar", 10, runtime_options=honest)
    assert result.is_passed
    assert 0 < result.counts["passed"] < 10
    assert result.exercised is not None
    assert 0 < result.exercised < 1
    wrong = write_liar(tmp_path / "wrong", "lying_backends.WrongWhenFused('Liar')")
    result = run_random_graphs("Liar", 10, runtime_options=wrong)
    assert result.problems


def test_a_layer_that_cannot_be_prepared_after_all_fails(tmp_path: Path) -> None:
    raising = "lying_backends.FakeBackend('Liar', faults={'create_workload': MemoryError('full')})"
    options = write_liar(tmp_path / "liars", raising)
    result = run_random_graphs("Liar", 4, runtime_options=options)
    assert any("could not be prepared: " in r.text for r in result.problems)


def test_jobs_do_not_change_results() -> None:
    alone, two = (run_random_graphs("CpuRef", 25, jobs=jobs) for jobs in (1, 2))
    durations = (replace(result, duration_s=0.0) for result in (alone, two))
    assert next(durations) == next(durations)
