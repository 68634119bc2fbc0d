"""The backend that ``torch.compile`` finds under the name ``armpy``.

References
----------
PyTorch, "Custom Backends": entry points of the group ``torch_dynamo_backends``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from torch.fx import GraphModule

from armpy.errors import ArmpyError, InvalidArgumentError, UnimplementedError
from armpy_torch.capture import CapturedGraph
from armpy_torch.compiled_graph import CompiledGraph
from armpy_torch.options import options_of


def compile_graph(
    module: GraphModule,
    example_inputs: Sequence[object],
    *,
    options: Mapping[str, Any] | None = None,  # Any: as `armpy.RuntimeOptions` takes them
    mode: str | None = None,
) -> Callable[..., Sequence[object]]:
    """Take a graph that Dynamo has captured; ``torch.compile`` calls it.

    Parameters
    ----------
    options : mapping of str to object, optional
        Parameters of `armpy.RuntimeOptions`: ``backends``, ``num_threads``, ``on_fallback`` and
        so on. With ``on_fallback`` "error", a graph that armpy refuses is an error as well.
        ``verify`` says whether first results are compared with PyTorch's; True by default.
    mode : str, optional
        Of Inductor; "default" alone is allowed.

    Returns
    -------
    callable
        Its calls raise the errors: what is raised here would reach the program as Dynamo's error.
    """
    try:
        _check_mode(mode)
        chosen = options_of(options, "torch.compile, options")
        graph = CapturedGraph.of(module)
        _check_gradients(graph)
    except ArmpyError as error:
        return _raising(error)
    if graph.is_empty:
        forward: Callable[..., Sequence[object]] = module.forward
        return forward
    return CompiledGraph(graph, chosen)


def _check_mode(mode: str | None) -> None:
    """Check that none of Inductor's modes is asked for."""
    if mode not in (None, "default"):
        raise InvalidArgumentError(
            "the mode is one of Inductor's",
            where="torch.compile, mode",
            expected="no mode",
            actual=repr(mode),
            fix="Leave it out, and give armpy's own options: options={'num_threads': 2}",
        )


def _check_gradients(graph: CapturedGraph) -> None:
    """Check that the program needs no gradients of the graph's outputs."""
    if graph.needs_gradients:
        raise UnimplementedError(
            "armpy computes no gradients",
            where="torch.compile",
            expected="a call without gradients",
            actual="an output that requires them",
            fix="Call the model in torch.no_grad() or torch.inference_mode(), and train it before "
            "it is compiled",
        )


def _raising(error: ArmpyError) -> Callable[..., NoReturn]:
    """A function that raises an error when it is called."""

    def fail(*arguments: object) -> NoReturn:
        raise error

    return fail
