from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from armpy.backend import (
    Extension,
    ExtensionOperand,
    ExtensionOperandType,
    ExtensionOperation,
    IBackendInternal,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    PreparationRequest,
    Support,
)
from armpy.errors import BackendError, InvalidArgumentError
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import ElementwiseUnary, UnaryOperation
from armpy.ops.operation import OperandInfos, Operation
from armpy.plugins import BackendProxy
from armpy.tensor import Shape, TensorInfo
from armpy_testing.backends.fake_backends import FakeFactory, runtime_of
from armpy_testing.models.networks import f32, floats

NAME = "com.example.sums"


@dataclass(frozen=True, slots=True)
class Halve(Operation):
    """An operation of the extension."""

    extension: ClassVar[str] = NAME

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        return (inputs[0].shape,)


def create(inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]) -> Operation:
    return Halve()


EXTENSION = Extension(
    NAME,
    [ExtensionOperandType(0, "SUM", True, 8)],
    [ExtensionOperation(0, "HALVE", create)],
)


class Vendor(IBackendInternal):
    """Takes everything that it is asked about, and negates it."""

    def __init__(self, backend_id: str = "Vendor", extensions: object = (EXTENSION,)) -> None:
        self._backend_id = backend_id
        self._extensions = extensions
        self.asked: list[str] = []

    def get_id(self) -> str:
        return self._backend_id

    def get_api_version(self) -> str:
        return "2.8"

    @property
    def extensions(self) -> Sequence[Extension]:
        return self._extensions  # type: ignore[return-value]  # may be wrong on purpose

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        asked = self.asked

        class Everything(ILayerSupport):
            def is_layer_supported(
                self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
            ) -> Support:
                asked.append(operation.name)
                return Support.yes()

        return Everything()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        class Negating(FakeFactory):
            def create_workload(self, operation, info):  # type: ignore[no-untyped-def]
                negate = ElementwiseUnary(UnaryOperation.NEG)
                return super().create_workload(negate, info)

        return Negating({})


def network() -> Network:
    net = Network()
    net.output("y", net.add(Halve(), net.input("x", f32(2)), name="half"))
    return net


@pytest.mark.parametrize("name", ["fibonacci", "", ".example", "com..x", "com.ex ample", 5, None])
def test_a_name_that_is_no_reversed_domain_is_refused(name: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"Expected a reversed domain name.*com\.exam"):
        Extension(name)  # type: ignore[arg-type]


def test_numbers_within_an_extension_have_16_bits() -> None:
    assert ExtensionOperandType(0xFFFF, "LAST", True, 1).id == 0xFFFF
    for number in (-1, 0x10000, True, "1"):
        with pytest.raises(InvalidArgumentError, match=r"'T': .*Expected 0 to 65535; got"):
            ExtensionOperandType(number, "T", True, 1)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match=r"'O': .*Expected 0 to 65535; got"):
            ExtensionOperation(number, "O", create)  # type: ignore[arg-type]


def test_an_element_has_at_least_one_byte() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"'T': the size .*Expected 1 byte or more; got 0"
    ):
        ExtensionOperandType(0, "T", True, 0)


def test_an_operation_needs_something_that_creates_it() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'O': `create` is not callable. Got None"):
        ExtensionOperation(0, "O", None)  # type: ignore[arg-type]


def test_two_types_with_one_number_are_refused() -> None:
    types = [ExtensionOperandType(3, name, True, 1) for name in ("A", "B")]
    with pytest.raises(InvalidArgumentError, match=r"operand_types: 'A' and 'B' have the same .*3"):
        Extension(NAME, types)


def test_types_and_operations_are_found_by_number() -> None:
    assert EXTENSION.operand_type(0) == ExtensionOperandType(0, "SUM", True, 8)
    assert EXTENSION.operand_type(1) is None
    operation = EXTENSION.operation(0)
    assert operation is not None
    assert operation.name == "HALVE"
    assert EXTENSION.operation(1) is None


def test_a_backend_supports_the_extensions_that_it_declares() -> None:
    assert list(Vendor().supported_extensions) == [NAME]
    guarded = BackendProxy(Vendor())
    assert list(guarded.extensions) == [EXTENSION]
    assert list(guarded.supported_extensions) == [NAME]


def test_what_an_extension_creates_is_checked_and_its_errors_name_the_backend() -> None:
    def raises(inputs: object, outputs: object) -> Operation:
        raise RuntimeError("no licence")

    def answers(inputs: object, outputs: object) -> str:
        return "Halve"

    for bad, reason in ((raises, "raised RuntimeError.*no licence"), (answers, "wrong type")):
        operations = [ExtensionOperation(0, "HALVE", bad)]  # type: ignore[arg-type]
        guarded = BackendProxy(Vendor(extensions=[Extension(NAME, (), operations)]))
        operation = guarded.extensions[0].operation(0)
        assert operation is not None
        with pytest.raises(BackendError, match=rf"Vendor / create: .*{reason}"):
            operation.create([], [])


def test_extensions_that_are_none_make_the_backend_unusable() -> None:
    for extensions, reason in (([NAME], "an entry has the wrong type"), (None, "wrong type")):
        with pytest.raises(BackendError, match=rf"Vendor / extensions: .*{reason}"):
            BackendProxy(Vendor(extensions=extensions))
    with pytest.raises(BackendError, match=r"extensions: two extensions have the same name"):
        BackendProxy(Vendor(extensions=[EXTENSION, EXTENSION]))


def test_a_backend_must_have_every_extension_that_an_operation_requires() -> None:
    class Mixed(Halve):
        __slots__ = ()

        @property
        def required_extensions(self) -> tuple[str, ...]:
            return (NAME, "com.example.other")

    net = Network()
    net.output("y", net.add(Mixed(), net.input("x", f32(2))))
    both = Vendor("Both", (EXTENSION, Extension("com.example.other")))
    model = Model(net, runtime_of(Vendor("One"), both))
    assert model.placement is not None
    assert model.placement.layers_by_backend == {"Both": 1}
    (refusal,) = model.placement.refusals
    assert refusal.text == "it does not have the vendor extension com.example.other"


def test_a_backend_of_contract_1_0_may_only_name_its_extensions() -> None:
    class Named(Vendor):
        @property
        def supported_extensions(self) -> Sequence[str]:
            return [NAME]

    model = Model(network(), runtime_of(Named(extensions=())))
    np.testing.assert_array_equal(model(floats(1, -2)), [-1, 2])


def test_nothing_of_an_extension_is_folded_by_its_name() -> None:
    @dataclass(frozen=True, slots=True)
    class Softmax(Halve):
        """Named as one of armpy's own operations, and no softmax."""

        beta: float = 1.0
        axis: int = -1

    net = Network()
    net.output("y", net.add(Softmax(), net.constant(floats(1, -2))))
    model = Model(net, runtime_of(Vendor()))
    np.testing.assert_array_equal(model(), [-1, 2])


def test_what_a_vendor_s_rules_raise_is_an_error_that_names_the_extension() -> None:
    class Broken(Halve):
        __slots__ = ()

        def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
            raise KeyError("shape")

    net = Network()
    with pytest.raises(BackendError, match=rf"Broken 'b': .* {NAME} raised KeyError\('shape'\)"):
        net.add(Broken(), net.input("x", f32(2)), name="b")


@pytest.mark.parametrize(
    "name",
    ["com.Example.sums", "com.my-example.sums", "com.example.sums!", "com.example." + "s" * 480],
)
def test_a_name_has_small_letters_digits_and_underscores_and_is_no_longer_than_a_domain(
    name: str,
) -> None:
    with pytest.raises(InvalidArgumentError, match="at most 253 lowercase letters, digits, dots"):
        Extension(name)
    assert Extension("com.example_2.sums_of_2").name == "com.example_2.sums_of_2"
