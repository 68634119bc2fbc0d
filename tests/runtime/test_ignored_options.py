"""What a caller says has an effect, or is an error."""

from __future__ import annotations

import pytest

import armpy
from armpy.backend import (
    BackendOption,
    DefaultAllocator,
    IBackendInternal,
    ICustomAllocator,
    IWorkloadFactory,
    NetworkResources,
    OptionScope,
    OptionValues,
)
from armpy.errors import BackendError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry
from tests.support.fake_backends import FakeBackend, registry_of, runtime_of
from tests.support.networks import chain, floats


class Fast(FakeBackend):
    """Declares an option, which it is given nowhere."""

    scope = OptionScope.MODEL

    @property
    def options(self) -> list[BackendOption]:
        return [BackendOption("fast", False, "Be fast.", self.scope)]


class Taking(Fast):
    """Is given its option."""

    given: OptionValues | None = None

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.given = network.model_options
        return super().create_workload_factory(network)


class FastAtRunTime(Fast):
    """Declares an option of the runtime's scope, which it is given nowhere."""

    scope = OptionScope.RUNTIME
    create_backend_context = IBackendInternal.create_backend_context  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("backends", ["CpuRef"]),
        ("num_threads", 1),
        ("on_fallback", "error"),
        ("trusted_keys", [b"\1" * 32]),
        ("code", "never"),
    ],
)
def test_options_beside_a_runtime_that_has_its_own_are_refused(option: str, value: object) -> None:
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    text = rf"load: a runtime has its own options.*got a runtime with {option}="
    with pytest.raises(InvalidArgumentError, match=text):
        armpy.load(b"", runtime=runtime, **{option: value})  # type: ignore[arg-type]


def test_an_option_that_a_backend_never_asks_for_is_an_error() -> None:
    text = "^A: the option 'fast' has no effect: the backend never asks for it"
    with pytest.raises(BackendError, match=text):
        runtime_of(FastAtRunTime("A"), backend_options={"A": {"fast": True}})
    runtime_of(FastAtRunTime("A"))  # nothing is lost where it is not given


def test_an_option_of_a_model_reaches_the_backend() -> None:
    backend = Taking("A")
    Model(chain(), runtime_of(backend, backend_options={"A": {"fast": True}}))
    assert backend.given == {"fast": True}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"quick": True}, r"^A: the backend has no option 'quick'.*Did you mean 'fast'"),
        ({"fast": "yes"}, r"^A: the option 'fast' cannot have this value"),
    ],
)
def test_options_of_a_backend_that_is_not_chosen_are_checked_too(
    options: dict[str, object], text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        runtime_of(Taking("A"), backends=["CpuRef"], backend_options={"A": options})
    runtime_of(Taking("A"), backends=["CpuRef"], backend_options={"A": {"fast": True}})


def test_memory_strategies_of_backends_that_are_not_chosen_are_checked_too() -> None:
    with pytest.raises(InvalidArgumentError, match="Greedy"):
        runtime_of(Taking("A"), backends=["CpuRef"], memory_strategies={"A": "GreedyBySizes"})


def test_options_of_a_backend_that_cannot_be_loaded_here_are_no_error() -> None:
    def fail() -> FakeBackend:
        raise OSError("the device is not there")

    registry = registry_of(FakeBackend("A"))
    registry.register("B", fail)
    options = {"B": {"anything": 1}}
    Runtime(RuntimeOptions(backends=["A"], registry=registry, backend_options=options))


class Allocating(FakeBackend):
    """Takes any allocator."""

    def __init__(self) -> None:
        super().__init__("A")

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        return True


class Counting(ICustomAllocator):
    """Counts what is taken from it."""

    count = 0

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        self.count += 1
        return DefaultAllocator().allocate(size_bytes, alignment_bytes)

    def free(self, memory: Array) -> None:
        return


def runtime_with(registry: BackendRegistry, *allocators: ICustomAllocator) -> Runtime:
    """A runtime of a shared registry, with an allocator or without."""
    custom = dict.fromkeys(["A"], allocators[0]) if allocators else {}
    return Runtime(RuntimeOptions(backends=["A"], registry=registry, custom_allocators=custom))


def test_an_allocator_is_used_by_the_runtime_that_it_was_given_to_alone() -> None:
    registry = BackendRegistry()
    registry.register("A", Allocating)
    one, other = Counting(), Counting()
    runtimes = [runtime_with(registry, one), runtime_with(registry), runtime_with(registry, other)]
    for runtime in runtimes:
        Model(chain(), runtime)(floats(-1, 2, 3, 4))
    assert (one.count, other.count) == (1, 1)
    Model(chain(), runtime_with(registry))(floats(-1, 2, 3, 4))
    assert (one.count, other.count) == (1, 1)
