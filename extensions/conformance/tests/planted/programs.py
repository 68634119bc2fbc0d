"""Faults of programs: of layers taken out, of what requests ask for, of files."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from armpy.backend import (
    IPrograms,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionValues,
    PreparationRequest,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
)
from armpy.errors import BackendCapabilityError, BackendError
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops.operation import Array, Operation
from armpy.store.digests import digest_of
from armpy.tensor import TensorInfo
from armpy.types import Priority

from .executions import After
from .planting import Planted
from .shapes import Factory, Fault, Fused, Programs, spoil

# --- Layers that are taken out


class Deletes(Fused):
    """Says of a single layer that it does nothing."""

    def __init__(self, condition: Callable[[Layer], object]) -> None:
        super().__init__()
        self._condition = condition

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        if len(view.layers) == 1 and len(view.inputs) == 1:
            layer = view.layers[0]
            is_alike = view.inputs[0].info.shape == view.outputs[0].info.shape
            if is_alike and self._condition(layer):
                return OptimizationViews(deleted=[view])
        return super().optimize_subgraph_view(view, request)


# --- Programs


class Prepared(Fused):
    """Programs are wrong for some requests."""

    def __init__(self, is_wrong: Callable[[PreparationRequest], bool]) -> None:
        super().__init__()
        self._is_wrong = is_wrong
        self._was_wrong = False

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self._was_wrong = self._is_wrong(request)
        return super().optimize_subgraph_view(view, request)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Factory(After(lambda _: True) if self._was_wrong else Fault())


# --- Programs in files


@dataclass
class Forgets(Fault):
    """An attribute is at its default when a program comes from a file."""

    operation_name: str
    attribute: str

    def operation(self, operation: Operation, how: str) -> Operation:
        if how != "loaded" or operation.name != self.operation_name:
            return operation
        (default,) = (f.default for f in fields(operation) if f.name == self.attribute)  # type: ignore[arg-type]  # subclasses are dataclasses
        return operation.with_attributes(**{self.attribute: default})


@dataclass
class Fractions(Fault):
    """Fractions among attributes are lost when a program is compiled, or comes from a file."""

    how: str
    digits: int  # that are kept

    def operation(self, operation: Operation, how: str) -> Operation:
        floats = {k: v for k, v in operation.attributes().items() if isinstance(v, float)}
        if how != self.how or not floats:
            return operation
        changed = {k: round(v, self.digits) if np.isfinite(v) else v for k, v in floats.items()}
        try:
            return operation.with_attributes(**changed)
        except Exception:  # noqa: BLE001 - 0 is not allowed there
            return operation


class SpentPrograms(Programs):
    """A program that was written down lacks its weights afterwards."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        saved = super().save(program, options)
        SPENT.add(id(program))
        return saved


SPENT: set[int] = set()
"""Programs that were written down."""


class Spent(Fault):
    """Such programs compute something else."""

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        if id(view) in SPENT:
            spoil(values[view.outputs[0]])


class MixesUp(Programs):
    """Gives the first program of the same shapes, whatever its constants are."""

    def load(self, saved: SavedProgram) -> object:
        wanted = self.kept[int(str(saved.about["number"]))]
        return next(program for program in self.kept if _infos(program) == _infos(wanted)), "loaded"


def _infos(program: object) -> list[TensorInfo]:
    """What a program reads and writes."""
    assert isinstance(program, SubgraphView)
    return [value.info for value in (*program.inputs, *program.outputs)]


class KeepsFiles(Programs):
    """Keeps a file open for each load of a program."""

    def load(self, saved: SavedProgram) -> object:
        weakref.finalize(self, os.close, os.open(os.devnull, os.O_RDONLY))
        return super().load(saved)


class SaysNoReason(Programs):
    """Refuses programs without a word."""

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return super().check(about, options)._replace(reason="")


class RefusesItsOwn(Programs):
    """Takes no program from a file."""

    def load(self, saved: SavedProgram) -> object:
        raise BackendCapabilityError("no file is good enough", where="Planted")


class WritesText(Programs):
    """Gives text where bytes belong."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        return SavedProgram({}, {"code": "text"})  # type: ignore[dict-item]  # the fault


class Gullible(Programs):
    """Accepts any program."""

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.ACCEPTED)


class WithPrograms(Fused):
    """A backend with other programs."""

    def __init__(self, programs: Programs, fault: Fault | None = None) -> None:
        super().__init__(fault)
        self.programs = programs

    def get_programs(self) -> IPrograms | None:
        return self.programs


class CompilesOnce(Fused):
    """Compiles nothing again that it has written into a file."""

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        digest = digest_of(view)
        if any(digest == digest_of(kept) for kept in self.programs.kept):
            self.compile_again(view)
        return super().optimize_subgraph_view(view, request)

    def compile_again(self, view: SubgraphView) -> None:
        """Refuse a program."""
        raise BackendError("it is in its files already")


class WrongTheSecondTime(CompilesOnce):
    """Makes another program where it has written one into a file."""

    def __init__(self) -> None:
        super().__init__(Spent())

    def compile_again(self, view: SubgraphView) -> None:
        SPENT.add(id(view))


PROGRAM_FAULTS: dict[str, Planted] = {
    "deleted/reverse": Planted(
        "ReverseV2/", partial(Deletes, lambda layer: layer.operation.name == "ReverseV2")
    ),
    "saved/convolution": Planted(
        "contract/compiled/every-attribute-comes-back",
        Fused,
        lambda: Forgets("Convolution2d", "activation"),
        "from a compiled model",
    ),
    "saved/patterns": Planted(
        "contract/compiled/patterns-come-back",
        Fused,
        lambda: Forgets("Convolution2d", "activation"),
        "from a compiled model",
    ),
    "compiled/once": Planted(
        "contract/compiled/parts-that-cannot-be-used-are-compiled-anew",
        CompilesOnce,
        said="it is in its files already",
    ),
    "compiled/wrong-the-second-time": Planted(
        "contract/compiled/parts-that-cannot-be-used-are-compiled-anew",
        WrongTheSecondTime,
        said="when its files are damaged, the output",
    ),
    "blind-program/spent": Planted(
        "contract/compiled/kept-parts-compute-the-same",
        lambda: WithPrograms(SpentPrograms(), Spent()),
    ),
    "compiled/refuses-its-own": Planted(
        "contract/compiled/kept-parts-compute-the-same",
        lambda: WithPrograms(RefusesItsOwn()),
        said="could not be loaded.*no file is good enough",
    ),
    "compiled/writes-text": Planted(
        "contract/compiled/kept-parts-compute-the-same",
        lambda: WithPrograms(WritesText()),
        said="the part 'code' is 'text', neither bytes",
    ),
    "compiled/mixes-up": Planted(
        "contract/compiled/saved-programs-compute-the-same",
        lambda: WithPrograms(MixesUp()),
        said="when it comes from a compiled model, the output",
    ),
    "growth/files-per-loaded-program": Planted(
        "contract/compiled/saved-programs-compute-the-same",
        lambda: WithPrograms(KeepsFiles()),
        said="loads of a compiled model .* more open files",
    ),
    "compiled/says-no-reason": Planted(
        "contract/compiled/saved-programs-compute-the-same",
        lambda: WithPrograms(SaysNoReason()),
        said="check gives no reason for refusing",
    ),
    "blind-program/gullible": Planted(
        "contract/compiled/saved-programs-compute-the-same", lambda: WithPrograms(Gullible())
    ),
    "calls/low-priority": Planted(
        "contract/calls/networks-of-every-priority-are-alike",
        lambda: Prepared(lambda request: request.priority is Priority.LOW),
    ),
    "calls/relaxed": Planted(
        "contract/calls/relaxed-answers-are-as-good-as-float16",
        lambda: Prepared(lambda request: request.relaxed),
    ),
    "attributes/fractions-compiled": Planted(
        "contract/alike/layers-differ-in-one-attribute", Fused, lambda: Fractions("compiled", 0)
    ),
    "attributes/fractions-loaded": Planted(
        "contract/compiled/every-attribute-comes-back", Fused, lambda: Fractions("loaded", 0)
    ),
}
"""By class and name."""
