"""Makes registries that applications hold."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.plugins.options import PathText, PluginOptions
from armpy.plugins.registry import BackendRegistry


def backend_registry(
    *,
    dynamic_backends_path: PathText | Sequence[PathText] = (),
    trust_insecure_paths: bool = False,
    trust_file: PathText | None = None,
    probe: bool = False,
    probe_timeout_s: float = 10.0,
) -> BackendRegistry:
    """Registry of the backends that can be found, for an application to hold.

    Parameters
    ----------
    dynamic_backends_path, trust_insecure_paths, trust_file, probe, probe_timeout_s
        As for `RuntimeOptions`, whose own do not count where a registry is given.

    Returns
    -------
    BackendRegistry
        A new one. ``RuntimeOptions(registry=...)`` gives it to any number of runtimes, which
        share its backends. It lives until `BackendRegistry.close`, or as long as it is held.

    Raises
    ------
    InvalidArgumentError
        If an option or the trust file cannot be used.

    Notes
    -----
    Arm NN has one registry in a process, which whoever likes changes for everybody. armpy has none:
    what is registered, where backends come from and what is trusted belongs to those who hold
    the registry, so that two libraries in one process do not get into each other's way. A
    runtime that is given none makes one for itself alone.

    References
    ----------
    Arm NN BackendRegistryInstance.

    Examples
    --------
    >>> registry = backend_registry()
    >>> registry.deregister("NumbaAcc")
    >>> registry.is_registered("CpuRef"), registry.is_registered("NumbaAcc")
    (True, False)
    """
    return BackendRegistry.discover(
        PluginOptions(
            dynamic_backends_path=dynamic_backends_path,
            trust_insecure_paths=trust_insecure_paths,
            trust_file=trust_file,
            probe=probe,
            probe_timeout_s=probe_timeout_s,
        )
    )
