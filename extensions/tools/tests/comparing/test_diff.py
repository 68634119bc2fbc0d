"""The first layer that differs is found, fused or not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.errors import InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy.ops import Activation, FullyConnected, Operation, Softmax
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import CompilingBackend, FakeBackend, registry_of
from armpy_testing.backends.lying_backends import Tampering, WrongWhenFused
from armpy_testing.command_line import armpy_output
from armpy_testing.digits import MODEL as DIGITS
from armpy_tools.comparison import ModelDifference, first_difference


def diff(backend: FakeBackend, **options: object) -> ModelDifference:
    registry = registry_of(backend, ReferenceBackend())
    return first_difference(
        DIGITS,
        backend.get_id(),
        runtime_options=RuntimeOptions(registry=registry),
        **options,  # type: ignore[arg-type]  # by name
    )


def adds_ten_to(*kinds: type[Operation]) -> Tampering:
    def tamper(operation: Operation, _: list[Array], outputs: list[Array]) -> None:
        if isinstance(operation, kinds):
            outputs[0].flat[3] += np.asarray(10, outputs[0].dtype)

    return Tampering(tamper, None)


@pytest.mark.parametrize(
    "backend", [FakeBackend("Honest"), CompilingBackend("Honest")], ids=["workloads", "compiler"]
)
def test_honest_backends_do_not_differ(backend: FakeBackend) -> None:
    difference = diff(backend)
    assert difference.is_same
    assert "Honest" in difference.backend_placement
    assert "CpuRef" in difference.against_placement


def test_the_first_wrong_layer_is_named_with_its_worst_element() -> None:
    difference = diff(adds_ten_to(FullyConnected, Softmax))
    first = difference.first
    assert first is not None
    assert first.operation.startswith("FullyConnected(")
    assert first.how == "alone"
    assert first.difference.count == 1
    assert first.difference.index[-1] == 3
    assert (first.backend, first.against) == ("Liar", "CpuRef")
    expected, actual = first.difference.expected, first.difference.actual
    assert expected is not None
    assert actual is not None
    assert actual in (expected + 10, expected + 10 - 256)


def test_a_layer_that_is_wrong_later_does_not_hide_an_earlier_one() -> None:
    late = diff(adds_ten_to(Softmax)).first
    early = diff(adds_ten_to(FullyConnected, Softmax)).first
    assert late is not None
    assert early is not None
    assert early.number < late.number


def test_layers_that_are_wrong_only_when_fused_are_found() -> None:
    first = diff(WrongWhenFused("Fuser")).first
    assert first is not None
    assert first.how == "together"
    assert first.backend == "Fuser"
    # Two layers are the fewest that it fuses.
    assert first.number == 1


def test_layers_that_run_elsewhere_do_not_differ() -> None:
    assert diff(FakeBackend("Narrow", (Activation,))).is_same


def test_inputs_can_be_given() -> None:
    name = diff(FakeBackend("Honest"))
    assert name.is_same
    with pytest.raises(InvalidArgumentError, match="the model has no such input"):
        diff(FakeBackend("Honest"), inputs={"nothing": np.zeros(1)})


@pytest.mark.slow
def test_the_command_prints_the_verdict_or_json() -> None:
    command = ["diff", str(DIGITS), "--backend", "CpuRef"]
    code, output = armpy_output(command)
    assert (code, "no difference: the outputs of all 10 layers agree" in output) == (0, True)
    code, output = armpy_output([*command, "--json"])
    document = json.loads(output)
    assert (code, document["is_same"], document["first"]) == (0, True, None)
