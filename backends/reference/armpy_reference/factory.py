"""Finds CpuRef's workload for an operation by its name."""

from __future__ import annotations

import importlib
import importlib.util
import re
from functools import cache

from armpy.backend import IWorkload, IWorkloadFactory, WorkloadInfo
from armpy.errors import UnimplementedError
from armpy.ops.operation import Operation
from armpy_reference.workload import ReferenceWorkload


@cache
def workload_class(kind: type[Operation]) -> type[ReferenceWorkload[Operation]] | None:
    """The workload class of an operation; None if CpuRef has none.

    ``Convolution2d`` is ``Convolution2dWorkload`` in ``workloads/convolution2d.py``. The
    module is imported when first asked for.
    """
    module_name = f"armpy_reference.workloads.{snake_case(kind.__name__)}"
    if importlib.util.find_spec(module_name) is None:
        return None
    module = importlib.import_module(module_name)
    workload: type[ReferenceWorkload[Operation]] = getattr(module, f"{kind.__name__}Workload")
    return workload


def snake_case(name: str) -> str:
    """``DepthwiseConvolution2d`` as ``depthwise_convolution2d``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class ReferenceWorkloadFactory(IWorkloadFactory):
    """Makes CpuRef's workloads."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Make the workload named after the operation.

        Raises
        ------
        UnimplementedError
            If CpuRef does not have the operation.
        """
        kind = workload_class(type(operation))
        if kind is None:
            raise UnimplementedError(
                f"CpuRef has no workload for {operation.name}", where=f"CpuRef / '{info.name}'"
            )
        return kind(operation, info)
