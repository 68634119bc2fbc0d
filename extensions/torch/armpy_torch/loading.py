"""Exported programs of PyTorch as models of armpy."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram

from armpy.core.arguments import check_instance
from armpy.errors import UnimplementedError
from armpy.model import Model
from armpy_torch.conversion import convert, without_writes, written_by
from armpy_torch.options import runtime_of


def load(program: ExportedProgram, **options: Any) -> Model:  # Any: as `RuntimeOptions` takes them
    """Load a program that ``torch.export.export`` has made.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        Its weights are shared, and must not be changed while the model is in use. Dimensions that
        it holds open stay so.
    **options
        Parameters of `armpy.RuntimeOptions`.

    Returns
    -------
    Model
        Inputs and outputs are the program's tensors, in order, nested ones one by one. It takes
        PyTorch's tensors as it does arrays, and returns arrays.

    Raises
    ------
    InvalidArgumentError, BackendUnavailableError
        If there is no such option or backend.
    UnimplementedError
        If PyTorch's exporter has no ONNX operators for it, or if the program writes to its inputs
        or buffers, or draws random numbers.
    ArmpyError
        As of `armpy.load`.

    Examples
    --------
    >>> program = torch.export.export(module, (image,))             # doctest: +SKIP
    >>> model = armpy_torch.load(program, backends=["NumbaAcc"])    # doctest: +SKIP
    """
    where = "armpy_torch.load"
    check_instance(
        program, where, ExportedProgram, fix="Pass torch.export.export(module, arguments)"
    )
    runtime = runtime_of(options, where)
    program = without_writes(program)
    if written := written_by(program):
        raise UnimplementedError(
            "the program writes to its inputs or buffers",
            where=where,
            expected="a program that returns all that it computes",
            actual=", ".join(f"'{name}'" for name in written),
            fix="Return the new elements, or take torch.compile(module, backend='armpy')",
        )
    converted = convert(program, {}, "exported_program", runtime.options.memory_limit_bytes)
    return Model(converted.network, runtime, closes_runtime=True)
