"""The factory of workloads that run compiled regions."""

from __future__ import annotations

from weakref import WeakValueDictionary

from armpy.backend import ICustomAllocator, IWorkload, IWorkloadFactory, WorkloadInfo
from armpy.errors import UnimplementedError
from armpy.ops import PreCompiled
from armpy.ops.operation import Operation
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.program.program import Program, SizedProgram
from armpy_numba_acc.runtime.instance import LoadedCode
from armpy_numba_acc.runtime.loaded import LoadedProgram
from armpy_numba_acc.runtime.profiling import Recorder
from armpy_numba_acc.runtime.workload import ProgramWorkload


class ProgramFactory(IWorkloadFactory):
    """Makes the workloads of compiled regions.

    Parameters
    ----------
    recorder : Recorder, optional
        For all of them.
    allocator : ICustomAllocator, optional
        Gives the memory of all of them.
    model : MachineModel, optional
        What things cost.
    num_threads : int
        Most threads of programs that came with their code.
    """

    def __init__(
        self,
        isa: Isa,
        recorder: Recorder | None = None,
        allocator: ICustomAllocator | None = None,
        model: MachineModel | None = None,
        num_threads: int = 0,
    ) -> None:
        self._isa = isa
        self._model = model
        self._num_threads = num_threads
        self._recorder = recorder
        self._allocator = allocator
        # Of programs for any sizes, each kept by those that were resized from it.
        self._templates: WeakValueDictionary[Program, ProgramWorkload] = WeakValueDictionary()

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Load a program's kernels.

        Raises
        ------
        UnimplementedError
            If the layer is not a compiled region.
        """
        if not isinstance(operation, PreCompiled):
            raise UnimplementedError(
                f"NumbaAcc runs compiled regions only, not a single {operation.name}",
                where=f"NumbaAcc / '{info.name}'",
            )
        program = operation.program
        if isinstance(program, SizedProgram):
            template = program.program
            known = self._templates.get(template)
            if known is None:
                known = self._templates[template] = self._workload(template)
            return known.resized(program)
        return self._workload(program)

    def _workload(self, program: Program | LoadedProgram) -> ProgramWorkload:
        """Load a program for some sizes."""
        if isinstance(program, LoadedProgram):
            code = program.code(self._num_threads)
        else:
            code = LoadedCode(program, self._isa, self._model)
        return ProgramWorkload(code, self._recorder, self._allocator)
