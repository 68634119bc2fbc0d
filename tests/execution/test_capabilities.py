"""Declared capabilities of backends, and the core's use of them."""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import DataType
from armpy.backend import (
    Capabilities,
    Capability,
    DefaultAllocator,
    ICustomAllocator,
    MemorySource,
    ReasonCode,
    has_capability,
    has_matching_capability,
)
from armpy.compiler.memory.strategies import ConstantMemoryStrategy
from armpy.errors import (
    BackendCapabilityError,
    BackendError,
    BackendUnavailableError,
    InvalidArgumentError,
    MemoryValidationError,
)
from armpy.execution import NetworkProperties
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    BinaryOperation,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    TransposeConvolution2d,
    UnaryOperation,
)
from armpy.ops.operation import Array, Operation
from armpy.plugins import BackendProxy
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.networks import chain, diamond, f32, floats, placement_of

X = floats(-1, 0, 2, 5)


class Capable(FakeBackend):
    """Says what it can do."""

    def __init__(
        self, capabilities: Mapping[str, object], operations: set[type] | None = None
    ) -> None:
        super().__init__("Capable", operations)
        self.capabilities = capabilities
        self.allocators: list[ICustomAllocator] = []
        self.default: ICustomAllocator | None = None

    def get_capabilities(self) -> Capabilities:
        return self.capabilities  # type: ignore[return-value]  # wrong ones too

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        self.allocators.append(allocator)
        return True

    def get_default_allocator(self) -> ICustomAllocator | None:
        return self.default


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_pairs_of_names_and_values_are_capabilities_too(kind: Any) -> None:
    pairs = [("ProtectedContentAllocation", True), ("NonConstWeights", False)]
    assert has_capability("ProtectedContentAllocation", kind(pairs))
    assert has_capability("NonConstWeights", kind(pairs))
    assert not has_capability("Strings", kind(pairs))
    assert has_matching_capability("ProtectedContentAllocation", True, kind(pairs))
    assert not has_matching_capability("ProtectedContentAllocation", 1, kind(pairs))
    assert not has_matching_capability("NonConstWeights", True, kind(pairs))


@pytest.mark.parametrize("wrong", ["ProtectedContentAllocation", [1, 2], None, {"A"}])
def test_capabilities_of_no_known_form_are_refused(wrong: Any) -> None:
    for use in (has_capability, partial(has_matching_capability, "A")):
        with pytest.raises(
            InvalidArgumentError, match=r"not names with values.*a mapping, or pair"
        ):
            use("A", wrong)


def test_a_capability_is_listed_or_not_and_matches_by_type_and_value() -> None:
    listed: Capabilities = {"A": True, "B": False, "C": 1, "D": "x"}
    assert [has_capability(name, listed) for name in "ABCDE"] == [True] * 4 + [False]
    assert has_matching_capability("A", True, listed)
    assert has_matching_capability("D", "x", listed)
    for name in "BCE":
        assert not has_matching_capability(name, True, listed)
    assert not has_matching_capability("C", 1.0, listed)


# Weights that are computed


def weighted(operation: Operation, weights: TensorInfo, bias: bool, *, constant: str = "") -> Graph:
    """A layer with the weights, and with a bias if wanted; the named operand is constant."""
    net = Network()
    x = net.input("x", f32(1, 2, 2, 1))
    operands = []
    for name, info in [("weights", weights), ("bias", f32(1))][: 1 + bias]:
        if name == constant:
            operands.append(net.constant(np.ones(info.known_shape, np.float32)))
        else:
            operands.append(net.input(name, info))
    net.output("y", net.add(operation, x, *operands, name="layer"))
    return net.build()


@pytest.mark.parametrize(
    ("operation", "weights"),
    [
        (Convolution2d(), f32(1, 1, 1, 1)),
        (DepthwiseConvolution2d(), f32(1, 1, 1, 1)),
        (TransposeConvolution2d(), f32(1, 1, 1, 1)),
        (FullyConnected(), f32(1, 4)),
    ],
    ids=lambda x: type(x).__name__,
)
@pytest.mark.parametrize(
    ("constant", "named"),
    [("", "weights and bias"), ("weights", "bias"), ("bias", "weights")],
)
def test_computed_weights_are_refused_by_a_backend_that_takes_constants_only(
    operation: Operation, weights: TensorInfo, constant: str, named: str
) -> None:
    graph = weighted(operation, weights, True, constant=constant)
    placement = placement_of(Model(graph, runtime_of(Capable({}))))
    (refusal,) = placement.refusals
    assert (refusal.backend, refusal.code) == ("Capable", "constant")
    assert refusal.text == f"{named} are not constant; it lacks NonConstWeights"
    assert placement.layers_by_backend == {"CpuRef": 1}


# All or nothing


def test_a_backend_that_wants_all_layers_gets_none_if_it_refuses_one() -> None:
    backend = Capable({Capability.ALL_OR_NOTHING: True}, {ElementwiseBinary})
    model = Model(diamond(), runtime_of(backend))
    placement = placement_of(model)
    assert placement.layers_by_backend == {"CpuRef": 4}
    text = "it runs all layers or none; Activation 'top': Capable does not do Activation"
    by_layer = {refusal.layer: refusal.text for refusal in placement.refusals}
    assert by_layer == {
        "top": text,
        "left": text,
        "right": text,
        "bottom": text,
    }
    np.testing.assert_array_equal(model(X), [1, 1, 9, 21])


def test_all_or_nothing_holds_also_for_a_layer_that_cannot_be_prepared() -> None:
    backend = Capable({Capability.ALL_OR_NOTHING: True})
    backend.faults = {"create_workload": ValueError("oops")}
    placement = placement_of(Model(diamond(), runtime_of(backend)))
    assert placement.layers_by_backend == {"CpuRef": 4}


# Allocators


class Counting(DefaultAllocator):
    """Counts what it has given and not got back."""

    def __init__(self, source: MemorySource = MemorySource.MALLOC) -> None:
        self.given: dict[int, tuple[int, int]] = {}
        self.allocations = 0
        self._source = source

    def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
        memory = super().allocate(size_bytes, alignment_bytes)
        self.given[memory.ctypes.data] = (size_bytes, alignment_bytes)
        self.allocations += 1
        return memory

    def free(self, memory: Array) -> None:
        del self.given[memory.ctypes.data]

    @property
    def memory_source(self) -> MemorySource:
        return self._source


def test_arenas_come_from_the_applications_allocator_and_go_back_with_the_model() -> None:
    allocator = Counting()
    backend = Capable({})
    model = Model(chain(), runtime_of(backend, custom_allocators={"Capable": allocator}))
    assert backend.allocators == [allocator]
    assert allocator.given == {}
    for _ in range(2):
        np.testing.assert_array_equal(model(X), X + 3)
        assert list(allocator.given.values()) == [(128, 64)]  # from the first execution on
    assert allocator.allocations == 1
    model.close()
    del model
    gc.collect()
    assert allocator.given == {}


def test_a_backend_that_takes_no_allocators_is_left_out_with_its_reason() -> None:
    options = {"custom_allocators": {"Fake": Counting()}}
    text = "^Fake / use_custom_memory_allocator: the backend does not use this custom allocator"
    with pytest.raises(BackendCapabilityError, match=text):
        runtime_of(FakeBackend(), **options)
    spec = runtime_of(FakeBackend(), backends=None, **options).get_device_spec()
    assert spec.supported_backends == ("CpuRef",)
    reasons = {candidate.backend_id: candidate.reason for candidate in spec.candidates}
    assert "does not use this custom allocator" in reasons["Fake"]


class Answering(FakeBackend):
    """Says whether it can use an allocator as Arm NN's backends do."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answered = answer

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        return self.answered  # type: ignore[return-value]  # wrong ones on purpose


@pytest.mark.parametrize("answer", ["yes", 1, None])
def test_an_answer_that_is_neither_yes_nor_no_breaks_the_contract(answer: object) -> None:
    text = f"^Fake / use_custom_memory_allocator: .*Expected bool; got {answer!r}"
    with pytest.raises(BackendError, match=text):
        runtime_of(Answering(answer), custom_allocators={"Fake": Counting()})


@pytest.mark.parametrize("kind", [list, tuple])
def test_capabilities_may_be_pairs_of_names_and_values(kind: type) -> None:
    asked = []

    class Listing(FakeBackend):
        def get_capabilities(self) -> Capabilities:
            asked.append(self)
            pairs = [(Capability.NON_CONST_WEIGHTS, True), ("Cores", 4)]
            return kind(pairs)  # type: ignore[no-any-return]  # as Arm NN's does

    runtime = runtime_of(Listing())
    assert "Fake" in runtime.get_device_spec().supported_backends
    for _ in range(2):
        runtime.load_network(chain())
    assert len(asked) == 1  # once per runtime
    assert BackendProxy(Listing()).get_capabilities() == {"NonConstWeights": True, "Cores": 4}


class Wrong(ICustomAllocator):
    """Gives something else."""

    def __init__(self, memory: object) -> None:
        self.memory = memory
        self.freed = 0

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        return self.memory  # type: ignore[return-value]  # wrong on purpose

    def free(self, memory: Array) -> None:
        self.freed += 1


ALIGNED = DefaultAllocator().allocate(4096)


def test_memory_that_cannot_be_used_costs_the_backend_its_layers_and_goes_back() -> None:
    allocator = Wrong(ALIGNED[:127])
    properties = NetworkProperties(on_failure="next")
    runtime = runtime_of(Capable({}), custom_allocators={"Capable": allocator})
    model = Model(chain(), runtime, properties=properties)
    np.testing.assert_array_equal(model(X), X + 3)
    placement = placement_of(model)
    assert placement.layers_by_backend == {"CpuRef": 3}
    text = r"Capable's allocator / allocate: .*memory cannot be used.*got uint8 \(127,\)"
    assert [bool(re.search(text, r.text)) for r in placement.refusals] == [True] * 3
    assert allocator.freed == 1


@pytest.mark.parametrize("option", ["custom_allocators", "memory_strategies"])
def test_options_for_a_backend_that_does_not_exist_are_an_error(option: str) -> None:
    value = Counting() if option == "custom_allocators" else ConstantMemoryStrategy()
    with pytest.raises(InvalidArgumentError, match=f"^{option}: there is no backend 'Npu'"):
        runtime_of(**{option: {"Npu": value}})


# Protected mode


class Mute(Counting):
    """Does not say what its memory is."""

    @property
    def memory_source(self) -> MemorySource:
        raise SystemExit("secret")


PROTECTED: Capabilities = {Capability.PROTECTED_CONTENT_ALLOCATION: True}


@pytest.mark.parametrize(
    ("capabilities", "allocator", "problem"),
    [
        ({}, None, "it lacks the capability ProtectedContentAllocation"),
        (
            {Capability.PROTECTED_CONTENT_ALLOCATION: False},
            Counting(MemorySource.DMA_BUF_PROTECTED),
            "it lacks the capability ProtectedContentAllocation",
        ),
        (PROTECTED, None, "there is no custom allocator for it"),
        (PROTECTED, Counting(MemorySource.DMA_BUF), "memory is MemorySource.DMA_BUF, not prot"),
        (PROTECTED, Mute(), r"'s allocator / memory_source: .*SystemExit\('secret'\)"),
    ],
)
def test_protected_mode_leaves_backends_out_with_the_condition_they_miss(
    capabilities: Capabilities, allocator: ICustomAllocator | None, problem: str
) -> None:
    allocators = {} if allocator is None else {"Capable": allocator}
    options = {"protected_mode": True, "custom_allocators": allocators}
    with pytest.raises((BackendCapabilityError, BackendError), match=f"^Capable.*{problem}"):
        runtime_of(Capable(capabilities), **options)
    with pytest.raises(BackendUnavailableError, match=f"no backend can be used.*{problem}"):
        runtime_of(Capable(capabilities), backends=None, **options)


# Memory strategies


def test_a_strategy_that_a_backend_cannot_do_with_is_a_warning_and_the_default_is_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = {"memory_strategies": {"Capable": "ConstantMemoryStrategy"}}
    model = Model(chain(4), runtime_of(Capable({Capability.MULTI_AXIS_PACKING: True}), **options))
    assert placement_of(model).arena_bytes == {"Capable": 2 * 64}
    text = (
        "memory strategy ConstantMemoryStrategy is not used for backend 'Capable', "
        "which lacks the capability SingleAxisPacking"
    )
    assert text in caplog.text


def test_a_strategys_wrong_answer_is_an_error_when_a_network_is_loaded() -> None:
    class Forgetful(ConstantMemoryStrategy):
        def optimize(self, blocks):  # type: ignore[no-untyped-def]  # as the base
            return super().optimize(blocks)[1:]

    runtime = runtime_of(memory_strategies={"CpuRef": Forgetful()})
    with pytest.raises(MemoryValidationError, match="a block is in no bin"):
        runtime.load_network(chain())


def test_reference_lists_the_capabilities_that_the_facts_give_it() -> None:
    listed = ReferenceBackend().get_capabilities()
    false = {
        Capability.PROTECTED_CONTENT_ALLOCATION,
        Capability.ALL_OR_NOTHING,
        Capability.CANCELLABLE_EXECUTION,  # NumPy's calls cannot be stopped
        Capability.LOOP_TIMEOUT,  # its control flow is the core's
        Capability.OWN_CACHE,
        Capability.TRACED_SIZES,  # nothing of CpuRef's is compiled, for whatever shapes
    }
    for capability in Capability:
        wanted = capability not in false
        assert has_matching_capability(capability, True, listed) is wanted, capability


# Asking a runtime whether its backends can run a graph


ADD = ElementwiseBinary(BinaryOperation.ADD)
FLOOR = ElementwiseUnary(UnaryOperation.FLOOR)


def floor_of_sum() -> Graph:
    """ADD of an input to itself, then FLOOR."""
    net = Network()
    x = net.input("x", TensorInfo((2,), DataType.FLOAT32))
    total = net.add(ADD, x, x, name="total")
    net.output("y", net.add(FLOOR, total, name="rounded"))
    return net.build()


def test_a_graph_is_supported_if_every_layer_is_by_some_backend() -> None:
    assert runtime_of(FakeBackend("Adder", {ElementwiseBinary})).get_layer_support(floor_of_sum())


def test_the_first_layer_without_a_backend_is_named_with_the_reason() -> None:
    runtime = runtime_of(FakeBackend("Adder", {ElementwiseBinary}), backends=["Adder"])
    answer = runtime.get_layer_support(floor_of_sum())
    assert not answer
    assert answer.code is ReasonCode.OPERATION
    assert answer.text == "ElementwiseUnary 'rounded': Adder does not do ElementwiseUnary"
