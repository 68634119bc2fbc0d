"""Options of `Optimize`."""

from __future__ import annotations

from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.fields import ScalarField, checked_arguments, choice, flag
from armpy_compat.pyarmnn.options.backend_options import BackendOptions
from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments


def _model_options(value: object) -> tuple[BackendOptions, ...]:
    """Copies of options of backends, which belong to the structure."""
    if not isinstance(value, list | tuple):
        raise TypeError("not a sequence")
    copies = tuple(map(BackendOptions, value))
    for copy in copies:
        copy.thisown = False
    return copies


class OptimizerOptions(SwigObject):
    """Options of `Optimize`.

    Takes nothing, or at least the first two of: reduceFp32ToFp16, debug, reduceFp32ToBf16,
    shapeInferenceMethod, importEnabled, modelOptions, exportEnabled. A bool in the fourth place is
    importEnabled, as in PyArmNN 20.08.

    Raises
    ------
    TypeError
        For other arguments.
    """

    m_ReduceFp32ToFp16 = flag()
    m_Debug = flag()
    m_ReduceFp32ToBf16 = flag()
    m_shapeInferenceMethod = choice(
        "ShapeInferenceMethod", constants.ShapeInferenceMethod_ValidateOnly
    )
    m_ImportEnabled = flag()
    m_ModelOptions = ScalarField[tuple[BackendOptions, ...]](
        (),
        "std::vector< armnn::BackendOptions,std::allocator< armnn::BackendOptions > > *",
        _model_options,
    )
    m_ExportEnabled = flag()

    def __init__(self, *args: object) -> None:
        names = [
            "m_ReduceFp32ToFp16",
            "m_Debug",
            "m_ReduceFp32ToBf16",
            "m_shapeInferenceMethod",
            "m_ImportEnabled",
            "m_ModelOptions",
            "m_ExportEnabled",
        ]
        if len(args) == 4 and isinstance(args[3], bool):
            names[3:] = ["m_ImportEnabled"]
        try:
            for name, value in checked_arguments(args, names, 2).items():
                setattr(self, name, value)
        except (TypeError, OverflowError) as error:
            raise wrong_arguments("new_OptimizerOptions") from error
