"""The backend as armpy sees it."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import (
    BackendOption,
    IBackendInternal,
    ILayerSupport,
    IMemoryManager,
    IWorkloadFactory,
    OptionScope,
    OptionValues,
)
from armpy.types import BackendId, DeviceType
from armpy_example_workloads.layer_support import ExampleLayerSupport
from armpy_example_workloads.workloads import ExampleWorkloadFactory


class ExampleWorkloadsBackend(IBackendInternal):
    """A few operations with NumPy, in the place of a device."""

    @property
    def backend_id(self) -> BackendId:
        """The name of the entry point."""
        return "ExampleWorkloads"

    @property
    def version(self) -> str:
        """That of this package."""
        return "1.0.0"

    @property
    def device_type(self) -> DeviceType:
        """As an accelerator it is asked before all others."""
        return DeviceType.ACCELERATOR

    @property
    def options(self) -> Sequence[BackendOption]:
        """Declared as data: the core checks values, and the command line shows them."""
        return (
            BackendOption(
                "max_elements",
                0,
                "Largest tensor that the device takes, in elements; 0 is any.",
                OptionScope.MODEL,
                minimum=0,
            ),
        )

    def get_layer_support(self) -> ILayerSupport:
        """What it runs if no options are given."""
        return ExampleLayerSupport()

    def get_layer_support_with_options(self, model_options: OptionValues) -> ILayerSupport:
        """What it runs with options; they are checked and complete."""
        return ExampleLayerSupport(int(model_options["max_elements"]))

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        """Make what prepares the layers of one network."""
        return ExampleWorkloadFactory()
