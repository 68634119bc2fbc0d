"""The backend as armpy sees it."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    IBackendInternal,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    OptionScope,
    PreparationRequest,
)
from armpy.types import BackendId, DeviceType
from armpy_example_workloads.layer_support import ExampleLayerSupport
from armpy_example_workloads.workloads import ExampleWorkloadFactory


class ExampleWorkloadsBackend(IBackendInternal):
    """A few operations with NumPy, in the place of a device."""

    def get_id(self) -> BackendId:
        """The name of the entry point."""
        return "ExampleWorkloads"

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.7"

    @property
    def version(self) -> str:
        """That of this package."""
        return "1.0.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """As an accelerator it is asked before all others."""
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

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

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """The layers that it runs with these options, which are empty if none were given."""
        return ExampleLayerSupport(int(request.model_options.get("max_elements", 0)))

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make what prepares the layers of one network."""
        return ExampleWorkloadFactory()
