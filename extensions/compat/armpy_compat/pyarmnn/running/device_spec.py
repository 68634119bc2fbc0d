"""PyArmNN's IDeviceSpec: the backends of a runtime, by Arm NN's ids."""

from __future__ import annotations

from collections.abc import Sequence

import armpy
from armpy.plugins import PluginOptions
from armpy_compat.backend_names import arm_nn_id, armpy_id
from armpy_compat.pyarmnn.conversion import runtime_errors
from armpy_compat.pyarmnn.options.backend_options import BackendId
from armpy_compat.pyarmnn.swig import SwigReference


class IDeviceSpec(SwigReference):
    """The backends of a runtime.

    Parameters
    ----------
    dynamic_backends_path : str
        Folder of backends that are not installed; empty for none.
    """

    def __init__(self, dynamic_backends_path: str = "") -> None:
        with runtime_errors():
            self._registry = armpy.BackendRegistry.discover(
                PluginOptions(dynamic_backends_path=dynamic_backends_path or ())
            )
            if dynamic_backends_path:
                self._registry.available()  # the ids of files are known once these are loaded
        self._runtimes: dict[tuple[tuple[str, ...], int | None], armpy.Runtime] = {}

    def GetSupportedBackends(self) -> tuple[BackendId, ...]:
        """Return the ids of the backends that can be used."""
        return tuple(map(BackendId, self.supported))

    @property
    def supported(self) -> list[str]:
        """Arm NN's ids of the backends that can be used."""
        return sorted(map(arm_nn_id, self._registry.backend_ids))

    def armpy_ids(self, preferences: Sequence[str]) -> list[str]:
        """The preferred backends that can be used, by their ids in armpy."""
        ids = [armpy_id(name) for name in preferences]
        return list(dict.fromkeys(filter(self._registry.is_registered, ids)))

    def runtime(self, backends: Sequence[str], num_threads: int | None) -> armpy.Runtime:
        """The runtime of armpy for some of its backends, made when it is first asked for."""
        key = (tuple(backends), num_threads)
        if key not in self._runtimes:
            options = armpy.RuntimeOptions(
                backends=list(backends), num_threads=num_threads, registry=self._registry
            )
            self._runtimes[key] = armpy.Runtime(options)
        return self._runtimes[key]

    def __str__(self) -> str:
        return f"IDeviceSpec {{ supportedBackends: [{', '.join(self.supported)}]}}"
