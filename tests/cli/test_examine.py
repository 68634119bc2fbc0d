from __future__ import annotations

from typing import Any  # JSON

import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    DeviceFigures,
    DeviceInfo,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    PerformanceFigures,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.cli.doctor.diagnose_backend import examine_backend
from armpy.errors import BackendError, UnimplementedError
from armpy.ops import Activation, ElementwiseBinary, FullyConnected
from armpy.ops.operation import OperandInfos, Operation
from armpy.types import DataType
from tests.support.lying_backends import Declaring, GivesBack, Pairs


class Lying(ReferenceBackend):
    def get_id(self) -> str:
        return "Lying"

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        raise UnimplementedError("the driver is from last year")


class Shy(ReferenceBackend):
    def get_id(self) -> str:
        return "Shy"

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return Nothing()


class Nothing(ILayerSupport):
    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: object
    ) -> Support:
        return Support.no(ReasonCode.DEVICE, "not today")


class Misspelt(ReferenceBackend):
    def get_id(self) -> str:
        return "Misspelt"

    version = 7  # type: ignore[assignment]  # that is what is wrong with it


class Boastful(ReferenceBackend):
    def get_id(self) -> str:
        return "Boastful"

    def get_devices(self) -> tuple[DeviceInfo, ...]:
        figures = DeviceFigures({DataType.FLOAT32: PerformanceFigures(exec_time=-0.5)})
        return (DeviceInfo(figures=figures),)


def outcomes(found: dict[str, object]) -> set[tuple[str, str]]:
    """Outcome and text of all trials."""
    trials: Any = found["trials"]
    return {(trial["outcome"], trial["text"]) for trial in trials}


def test_the_reference_passes_every_trial() -> None:
    found = examine_backend(ReferenceBackend())
    assert outcomes(found) == {("ran", "ran")}
    assert found["problems"] == []


def test_a_refusal_is_no_problem() -> None:
    found = examine_backend(Shy())
    assert outcomes(found) == {("refused", "refused: not today (device)")}
    assert found["problems"] == []


def test_figures_that_are_not_used_are_a_problem() -> None:
    found = examine_backend(Boastful())
    assert outcomes(found) == {("ran", "ran")}
    problems: Any = found["problems"]
    (problem,) = problems
    assert problem.startswith("Boastful / get_devices: tensors[DataType.FLOAT32].exec_time")
    assert "got -0.5" in problem


def test_what_was_said_to_be_supported_and_cannot_be_prepared_is_a_problem() -> None:
    found = examine_backend(Lying())
    problems: Any = found["problems"]
    (problem,) = problems
    assert problem.startswith("addition failed: said supported, but failed to prepare: ")
    assert "the driver is from last year" in problem


def test_a_property_against_the_contract_is_raised() -> None:
    with pytest.raises(BackendError, match=r"Misspelt / version: .* Expected str; got 7"):
        examine_backend(Misspelt())


def test_a_backend_that_takes_pairs_only_is_tried_with_neighbours() -> None:
    found = examine_backend(Pairs("Pairs", (ElementwiseBinary, Activation, FullyConnected)))
    assert outcomes(found) == {("ran", "ran with RELU behind, as it was given back alone")}
    assert found["problems"] == []


def test_a_backend_that_gives_everything_back_is_a_problem() -> None:
    found = examine_backend(GivesBack("Shy"))
    problems: Any = found["problems"]
    (problem,) = problems
    assert problem.startswith("addition failed: said supported, but gave it back, alone and with ")


def test_a_backend_with_patterns_of_its_own_may_give_layers_back() -> None:
    found = examine_backend(Declaring("Declaring"))
    assert {outcome for outcome, _ in outcomes(found)} <= {"refused", "given back"}
    assert found["problems"] == []
