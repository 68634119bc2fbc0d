"""Exported programs of PyTorch as models of armpy."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from armpy.core.arguments import check_instance
from armpy.errors import UnimplementedError
from armpy.model import Model
from armpy_torch.conversion import ConvertedProgram, convert
from armpy_torch.graph_program import result_of
from armpy_torch.options import options_of
from armpy_torch.partitioned_program import refusal_of_all
from armpy_torch.preparation import PreparedProgram, written_by
from armpy_torch.tensors import array_of
from armpy_torch.verification import difference, differing_operators


def load(program: ExportedProgram, **options: Any) -> Model:  # Any: as `RuntimeOptions` takes them
    """Load a program that ``torch.export.export`` has made.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        Its weights are shared, and must not be changed while the model is in use. Dimensions that
        it holds open stay so.
    **options
        Parameters of `armpy.RuntimeOptions`, and ``verify``: whether the model's results for the
        arguments that the program was exported with are compared with PyTorch's; True by default.

    Returns
    -------
    Model
        Inputs and outputs are the program's tensors, in order, nested ones one by one. It takes
        PyTorch's tensors as it does arrays, and returns arrays. A model has armpy's rules for
        elements, not PyTorch's errors: an index of -1 is the last one, and an integer divided by
        zero is 0. Calls of ``torch.compile`` leave such elements to PyTorch.

    Raises
    ------
    InvalidArgumentError, BackendUnavailableError
        If there is no such option or backend.
    UnimplementedError
        If armpy does not take all of its operators, if it writes to its inputs or buffers, if it
        holds for some sizes of its open dimensions alone, or if results differ from PyTorch's.
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
    chosen = options_of(options, where)
    prepared = PreparedProgram.of(program)
    if written := written_by(prepared.program):
        raise UnimplementedError(
            "the program writes to its inputs or buffers",
            where=where,
            expected="a program that returns all that it computes",
            actual=", ".join(f"'{name}'" for name in written),
            fix="Return the new elements, or take torch.compile(module, backend='armpy')",
        )
    if prepared.refusals:
        raise refusal_of_all(prepared.refusals)
    _check_sizes(prepared)
    runtime = chosen.runtime
    limit = runtime.options.memory_limit_bytes
    converted = convert(prepared.program, {}, "exported_program", limit, checks_elements=False)
    model = Model(converted.network, runtime, closes_runtime=True)
    if chosen.verify and program.example_inputs:
        try:
            _verify(program, converted, model)
        except BaseException:
            model.close()
            raise
    return model


def _check_sizes(prepared: PreparedProgram) -> None:
    """Check that a program holds for all sizes of the dimensions that it leaves open.

    A network has no conditions on sizes. Each open size is tried from its least one on.
    """
    for tensors in prepared.trial_tensors():
        try:
            prepared.guards(*tensors)
        except AssertionError as error:
            raise UnimplementedError(
                "the program does not hold for all sizes of its open dimensions",
                where="armpy_torch.load",
                expected=str(error).removeprefix("Guard failed: "),
                actual=", ".join(str(tuple(tensor.shape)) for tensor in tensors),
                fix="Export it with fixed sizes, or with a range of sizes that it holds for "
                "(torch.export.Dim)",
            ) from error


def _verify(program: ExportedProgram, converted: ConvertedProgram, model: Model) -> None:
    """Check a model's results for the arguments that the program was exported with."""
    args, kwargs = program.example_inputs
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    with torch.no_grad():
        expected = tree_leaves(program.module()(*args, **kwargs))
        names = [spec.name for spec in model.inputs]
        given = [array_of(tensors[number]) for number in converted.inputs]
        results = model.run(dict(zip(names, given, strict=True)))
        actual = [result_of(output, results) for output in converted.outputs]
        text = difference(actual, expected)
        if text:
            prepared = PreparedProgram.of(program)
            operators = differing_operators(prepared.program, tensors, model.runtime)
            raise UnimplementedError(
                "the model's results differ from PyTorch's",
                where="armpy_torch.load",
                expected="the results of program.module() for program.example_inputs",
                actual=f"{text}; {', '.join(operators) or 'no single operator differs'}",
                fix="Use torch.compile(module, backend='armpy'), which leaves such operators to "
                "PyTorch, or pass verify=False",
            )
