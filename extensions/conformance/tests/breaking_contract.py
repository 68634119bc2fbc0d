"""Backends that each break one of the contract's older rules, on host memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from armpy.backend import (
    BackendOption,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    IMemoryManager,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptionScope,
    OptionValues,
    Support,
)
from armpy.errors import BackendError
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import (
    CountingManager,
    FakeBackend,
    FakeFactory,
    FunctionWorkload,
    Handles,
    Outputs,
    Step,
)
from armpy_testing.backends.tampering_backend import OPERATIONS, adds_one

IsWrong = Callable[[Handles, Outputs], bool]


def sometimes(is_wrong: IsWrong) -> FakeFactory:
    """Makes workloads whose answers are wrong if a function says so."""

    def wrap(step: Step) -> IWorkload:
        def execute(inputs: Handles, outputs: Outputs) -> None:
            spoils = is_wrong(inputs, outputs)
            step.right.execute(inputs, outputs)
            if spoils:
                adds_one(step.operation, [], [handle.map() for handle in outputs])

        return FunctionWorkload(execute)

    return FakeFactory(wrap=wrap)


class Old(FakeBackend):
    """Does some operations, and counts the networks that it was asked to make something for."""

    def __init__(self, memory_manager: IMemoryManager | None = None) -> None:
        super().__init__("Liar", OPERATIONS, memory_manager=memory_manager)
        self.num_made = 0


class NewVersions(Old):
    """Has another version whenever it is asked."""

    @property
    def version(self) -> str:
        self.num_made += 1
        return str(self.num_made)


class OnlySome(Old):
    """Makes what so many networks need, and no more."""

    most = 40

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.num_made += 1
        if self.num_made > self.most:
            raise BackendError("there are no more slots")
        return super().create_workload_factory(network)


class OnlyOne(OnlySome):
    """Makes what one network needs."""

    most = 1


class OnlyTheNewest(Old):
    """Computes right for the network that was loaded last."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.num_made += 1
        number = self.num_made
        return sometimes(lambda *_: number != self.num_made)


class GoesWithTheFirstRuntime(Old):
    """Has lost something when one of its runtimes has gone."""

    has_lost = False

    def create_backend_context(self, options: Mapping[str, object]) -> IBackendContext | None:
        backend = self

        class Context(IBackendContext):
            def close(self) -> None:
                backend.has_lost = True

        return Context()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return sometimes(lambda *_: self.has_lost)


class KnownShapesOnly(Old):
    """Counts elements that it does not know."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        for info in inputs:
            if info is not None:
                assert info.num_elements >= 0  # which asks for every dimension
        return super().supports(operation, inputs, outputs)


class OneLoadAtATime(Old):
    """Cannot prepare two networks at once."""

    def __init__(self) -> None:
        super().__init__()
        self._busy = threading.Lock()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        if not self._busy.acquire(blocking=False):
            raise BackendError("another network is being prepared")
        try:
            time.sleep(0.05)
            return super().create_workload_factory(network)
        finally:
            self._busy.release()


class WrongWhenHeldAgain(Old):
    """Has lost something when its memory is acquired for the second time."""

    def __init__(self) -> None:
        self.manager = CountingManager()
        super().__init__(self.manager)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        first = self.manager.acquired
        return sometimes(lambda *_: self.manager.acquired - first > 2)


class Undescribed(Old):
    """Has an option that says nothing of itself."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("depth", 1, " "),)

    def create_backend_context(self, options: Mapping[str, object]) -> IBackendContext | None:
        return None


class DefaultsAreWrong(Old):
    """Computes something else when the application gives options, whatever they are."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("fast", False, "Whether fast.", OptionScope.MODEL),)

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext:
        return IBackendModelContext()  # made where the application gives options alone

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return sometimes(lambda *_: network.model_context is not None)


class FastIsWrong(DefaultsAreWrong):
    """Computes something else for one choice."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return sometimes(lambda *_: bool(network.model_options.get("fast")))


class FastFails(DefaultsAreWrong):
    """Refuses one choice, and does not say which."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        if network.model_options.get("fast"):
            raise BackendError("no")
        return Old.create_workload_factory(self, network)


def remembering(is_wrong: Callable[[set[int], list[int]], bool]) -> Old:
    """A backend that knows, by address, which tensors were written and how often each was read."""

    class Remembering(Old):
        def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
            written: set[int] = set()
            read: list[int] = []

            def look(inputs: Handles, outputs: Outputs) -> bool:
                targets = {_address(handle) for handle in outputs}
                sources = {_address(handle) for handle in inputs if handle is not None}
                answer = is_wrong(written & sources, [a for a in read if a in sources])
                written.update(targets)
                read[:] = [a for a in read if a not in targets] + list(sources)
                return answer

            return sometimes(look)

    return Remembering()


def _address(handle: ITensorHandle) -> int:
    """Where a tensor lies."""
    return int(handle.map().ctypes.data)


class OneShape(Old):
    """Keeps its preparation of an operation, whatever shape comes next."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, int] = {}

    def wrap(self, step: Step) -> IWorkload:
        info = step.info.outputs[0]
        size = info.known_shape[0] if info.known_shape else 0
        is_same = self._kept.setdefault(f"{step.operation} {info.rank}", size) == size
        factory = sometimes(lambda *_: not is_same)
        return factory.create_workload(step.operation, step.info)


OLD_BREAKERS: dict[str, tuple[Callable[[], IBackendInternal], str]] = {
    "identity/properties-are-constant": (NewVersions, "version is not constant"),
    "lifecycle/objects-can-be-made-again": (OnlyOne, "there are no more slots"),
    "lifecycle/load-and-unload-again-and-again": (OnlySome, "there are no more slots"),
    "lifecycle/several-networks-at-once": (OnlyTheNewest, "with several networks loaded"),
    "lifecycle/several-runtimes": (GoesWithTheFirstRuntime, "after another runtime has gone"),
    "support/open-shapes-are-answered": (KnownShapesOnly, "Error"),
    "threads/threads-load-networks": (OneLoadAtATime, "another network is being prepared"),
    "memory/memory-is-held-while-running": (WrongWhenHeldAgain, "in execution 3, the output"),
    "options/are-described": (Undescribed, "the option 'depth' has no help"),
    "options/defaults-are-accepted": (DefaultsAreWrong, "with every option at its default"),
    "options/choices-are-accepted": (FastIsWrong, "with fast = True, the output"),
    "graphs/two-layers": (
        lambda: remembering(lambda written, _: bool(written)),
        "with two layers, the output",
    ),
    "graphs/branches": (
        lambda: remembering(lambda written, read: bool(written and read)),
        "with branches, the output",
    ),
    "graphs/separate-parts": (
        lambda: remembering(lambda written, read: not written and bool(read)),
        "with two separate layers",
    ),
    "graphs/another-shape-at-the-call": (OneShape, "with an open first dimension"),
}
"""By rule: a backend that breaks it, and a part of the failure's text."""

RULES_WITHOUT_BREAKERS = {
    "options/wrong-values-are-refused",
    "options/unknown-names-are-refused",
    "graphs/input-as-output",
    "graphs/output-twice",
    "graphs/no-layers",
    "caller/wrong-input",
    "caller/arrays-of-the-caller",
}
"""Duties of the core towards every backend; the kit checks them."""

BROKEN_ELSEWHERE = {
    "identity/id-is-constant",
    "support/answers-have-reasons",
    "support/answers-do-not-change",
    "support/unknown-operations-are-refused",
    "threads/threads-share-a-network",
    "memory/manager-can-be-used-again",
    # These are in the tests of armpy_conformance.
    "compiled/kept-parts-compute-the-same",  # test_compiled_rule.py
    "compiled/parts-that-cannot-be-used-are-compiled-anew",  # there, too
    "compiled/saved-programs-compute-the-same",  # test_saved_rule.py
    # The next two: test_declared_memory_rules.py.
    "alignment/tensors-lie-where-their-factory-declares",
    "alignment/nothing-is-written-past-the-padding",
    "compiled/every-attribute-comes-back",  # test_planted_faults.py, to the next name
    "compiled/patterns-come-back",
    "loops/state-goes-through-loops-and-choices",
    "loops/loops-stop-at-their-time-out",
    "threads/threads-mix-networks-and-executions",
    "threads/threads-race-every-operation",
    "alike/layers-differ-in-one-attribute",
    "alike/runtimes-differ-in-one-option",
    "contents/networks-differ-in-one-element",
    "contents/executions-are-right-each-time",
    "contents/executions-that-differ-in-one-element",
    "contents/functions-for-arrays-are-like-executions",
    "calls/calls-with-every-request-are-alike",
    "calls/networks-of-every-priority-are-alike",
    "calls/relaxed-answers-are-as-good-as-float16",
    "lifecycle/executions-go-on-for-long",
    "process/settings-stay",
    "process/nothing-is-printed",
    "process/inputs-are-only-read",
    "process/forked-children-answer-or-refuse",
    "lifecycle/many-networks-at-once",
    "lifecycle/executions-after-a-rest-are-right",
    "gauges/every-map-is-unmapped",
    "gauges/nothing-grows-from-execution-to-execution",
    "gauges/nothing-grows-from-load-to-load",
    "gauges/nothing-grows-from-runtime-to-runtime",
    "gauges/neighbours-come-and-go",
    "gauges/every-option-is-read",
    "gauges/device-times-are-no-longer-than-the-clocks",
    "sizes/new-sizes-are-as-if-compiled-for-them",  # test_sizes_rule.py
    # From here on: test_planted_process.py.
    "identity/versions-can-be-compared",
    "identity/devices-can-be",
    "identity/figures-are-plausible",
    "identity/free-memory-is-plausible",
    "identity/capabilities-are-of-their-types",
    "identity/threads-get-the-same-facts",
    "support/many-answers-are-as-many-and-in-order",
    "support/codes-fit-their-refusals",
    "process/imports-change-nothing",
    "process/a-whole-life-changes-nothing",
    "process/no-files-are-left",
    "process/nothing-is-printed-at-any-time",
    "process/idle-backends-use-no-processor",
    "process/the-interpreter-ends",
    "process/processes-get-the-same-facts",
}
"""Rules whose breakers are in the kit's test_conformance_kit.py, where nothing is said."""
