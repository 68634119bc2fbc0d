"""Optimises networks without loading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy.backend import IBackendInternal
from armpy.compiler import OptimizedNetwork, OptimizerOptions
from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.plugins import BackendRegistry
from armpy.plugins.proxy.guard import BackendProxy


def optimize(
    network: Network | Graph,
    backends: Runtime | Sequence[str | IBackendInternal] | None = None,
    options: OptimizerOptions | None = None,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> OptimizedNetwork:
    """Assign a network's layers to backends and plan its memory, without loading it.

    Raises BackendUnavailableError, BackendCapabilityError if a backend is missing, or none takes a
    layer; InvalidArgumentError if an option is not known or allowed; if an input has no shape, or
    one that does not fit; UnimplementedError if shapes depend on the elements of inputs.

    Parameters
    ----------
    backends : Runtime, or sequence of (str or IBackendInternal), optional
        A runtime with its backends and options; or ids, or backends themselves, most preferred
        first. Every installed backend if left out. Ids are those of installed backends;
        `Runtime.optimize_network` takes ids of a runtime's, dynamic ones among them.
    options : OptimizerOptions, optional
        Its model options and memory strategies come before those of a runtime.
    shapes : mapping of str to tuple of int, optional
        Shapes of inputs whose dimensions the network leaves open; their default shapes if left
        out. The optimised network is for these alone.

    Returns
    -------
    OptimizedNetwork
        To be inspected, saved, and loaded with `Runtime.load_network`.

    Notes
    -----
    Backends say which layers they take, and compile their parts. Layers that they then fail to
    prepare move when the network is loaded. Graphs that control flow runs are assigned then, too.

    Examples
    --------
    >>> optimized = armpy.optimize(network, ["NumbaAcc", "CpuRef"])  # doctest: +SKIP
    >>> optimized.placement.layers_by_backend                       # doctest: +SKIP
    {'NumbaAcc': 12, 'CpuRef': 1}
    >>> runtime = armpy.Runtime()                                   # doctest: +SKIP
    >>> network_id = runtime.load_network(optimized)                # doctest: +SKIP

    References
    ----------
    Arm NN Optimize.
    """
    if isinstance(backends, Runtime):
        return backends.optimize_network(network, options, shapes=shapes)
    try:
        installed = Runtime(_options(backends))
    except BackendUnavailableError as error:
        of_runtime = "Runtime.optimize_network(backends=...) takes ids of a runtime's own backends"
        error.fix = "; ".join(filter(None, (error.fix, of_runtime)))
        raise
    with installed as runtime:
        return runtime.optimize_network(network, options, shapes=shapes)


def _options(backends: Sequence[str | IBackendInternal] | None) -> RuntimeOptions:
    """A runtime's options for backends by id, or for these objects."""
    if backends is None or isinstance(backends, str):
        return RuntimeOptions(backends=backends)  # which refuses the latter
    ids = [backend for backend in backends if isinstance(backend, str)]
    objects = [backend for backend in backends if isinstance(backend, IBackendInternal)]
    if len(ids) == len(backends):
        return RuntimeOptions(backends=ids)
    if len(objects) < len(backends):
        raise InvalidArgumentError(
            "these are not backends, or given in several ways",
            where="backends",
            expected="ids, or backends",
            actual=", ".join(type(backend).__name__ for backend in backends),
        )
    registry = BackendRegistry()
    names = [BackendProxy(backend).get_id() for backend in objects]
    for name, backend in zip(names, objects, strict=True):
        registry.register(name, lambda backend=backend: backend)  # type: ignore[misc]
    return RuntimeOptions(backends=names, registry=registry)
