"""The page about the contract, from the docstrings of `armpy.backend`."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import itertools
import textwrap
from functools import cached_property
from typing import Any

import armpy.backend
import armpy.graph
import armpy.tensor
from armpy.backend import BACKEND_API_VERSION

from .markdown import prose, summary

HEAD = f"""# The backend contract, version {BACKEND_API_VERSION}

Import every name that a backend needs from `armpy.backend`; `armpy.graph`, `armpy.tensor` and
`armpy.ops` have the types of its arguments. This page lists all names, and describes what a backend
writes or receives. Everything else is in the docstrings: `help(armpy.backend.ITensorArena)`, or the
[site's pages of classes](api/index.rst). Begin with [A backend on two
screens](../tutorials/a_backend.md). **R** marks members that must be written.

| page | content |
|---|---|
| [Arm NN's names](arm_nn_names.md) | the name of each class and method of Arm NN |
| [Calls in order](calls_in_order.md) | the order of the core's calls |
| [Layers and attributes](layers_and_attributes.md) | parts of models as layers or attributes |
| [Operations](operations.md) | operands, attributes and types of every operation |
| [Compatibility](compatibility.md) | guarantees between versions |
"""

CHAPTERS = {
    "The backend": "IBackendInternal",
    "Devices": "DeviceInfo DeviceFigures PerformanceFigures Numerics",
    "What it can run": "ILayerSupport Support ReasonCode",
    "Layers, prepared and executed": """
        NetworkResources IWorkloadFactory WorkloadInfo IWorkload ICompletion
        IResizableProgram Cancellation current_cancellation loop_timeout_s
        control_flow_time_left_s cancellable current_priority ExecutionTiming
        current_timing timed_by
    """,
    "Vendor extensions": "Extension ExtensionOperandType ExtensionOperation ExtensionOperand",
    "Compiling": "PreparationRequest OptimizationViews Substitution postpone_compilation",
    "Hosting an engine": "IEngineBackend IEnginePrograms IEngineProgram",
    "Graphs and their parts": "SubgraphView Layer Value Graph Variable TensorInfo Quantization",
    "Options": "BackendOption OptionScope",
    "Capabilities": "Capability has_capability has_matching_capability",
    "Contexts": """
        IBackendContext IBackendModelContext IBackendProfilingContext IBackendProfiling
        Counter CounterKind Measurement LayerMeasurement trace_section
    """,
    "Tensors": """
        ITensorHandle HostTensorHandle DynamicTensorHandle ITensorHandleFactory
        HostTensorHandleFactory ITensorArena TensorHandleFactoryRegistry MemorySource
        ExternalMemory IDeviceMemory DeviceMemoryRequest MemoryRole
    """,
    "Programs in files": "IPrograms SavedProgram SavedKernels packed_view ProgramCheck ProgramFit",
    "Caches of its own": """
        IBackendCache CacheEntry GroupedCacheEntry cache_directory CacheUse
        report_cache_use model_name
    """,
    "Progress": "Progress report_progress watch_progress",
    "Tuning": "requested_tuning TuningRequest TuningResult TunedChoice request_tuning",
    "Log messages": "is_vlog_on vlog",
    "Memory": "IMemoryManager ICustomAllocator DefaultAllocator",
    "Memory strategies": "IMemoryOptimizerStrategy PackingType MemBlock MemBin",
}
"""Names of classes and functions, by chapter."""

WHOLE = frozenset(
    [
        "IBackendInternal",
        "IWorkload",
        "IResizableProgram",
        "OptimizationViews",
        "Capability",
        "IBackendContext",
        "ExternalMemory",
    ]
)
"""Names with their notes on the page; the notes of all others are in their docstrings alone."""

LISTED = frozenset(
    [
        "DynamicTensorHandle",
        "HostTensorHandle",
        "HostTensorHandleFactory",
        "TensorHandleFactoryRegistry",
        "DefaultAllocator",
        "Cancellation",
        "SubgraphView",
        "Layer",
        "Value",
        "Graph",
        "TensorInfo",
        "Quantization",
        "BackendOption",
        "ExternalMemory",
    ]
)
"""Classes of the core, whose members are listed by name."""


def describe(thing: Any) -> str:  # Any: a class or a function
    """The section of one name."""
    text = prose(thing.__doc__) if thing.__name__ in WHOLE else summary(thing.__doc__)
    if inspect.isfunction(thing):
        return f"### `{thing.__name__}{plain_signature(thing)}`\n\n{text}"
    parts = [f"### {thing.__name__}", text]
    if issubclass(thing, enum.Enum):
        parts.append(", ".join(f"`{m.name}={m.value!r}`" for m in thing) + ".")
        return "\n\n".join(parts)
    fields = [f.name for f in dataclasses.fields(thing)] if dataclasses.is_dataclass(thing) else []
    if fields:
        parts += field_lines(thing)
    rows = [
        _title(name, member) if thing.__name__ in LISTED else _member(name, member)
        for name, member in vars(thing).items()
        if _is_public(name) and name not in fields and _says_something(member)
    ]
    if rows and thing.__name__ in LISTED:
        parts.append(f"Members: {', '.join(rows)}.")
    elif rows:
        parts += ["Members:"] * bool(fields) + ["\n".join(rows)]
    return "\n\n".join(parts)


def field_lines(thing: type) -> list[str]:
    """Lists the fields of a dataclass with their comments, as one paragraph; none without comments.

    A comment stands after its field or in the string below it. One above stands for two fields.
    """
    lines = inspect.getsource(thing).splitlines()
    body = ast.parse(textwrap.dedent("\n".join(lines))).body[0]
    assert isinstance(body, ast.ClassDef)
    rows: list[tuple[str, str]] = []
    above = ""
    for statement, following in zip(body.body, [*body.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign):
            continue
        before = itertools.takewhile(_is_comment, reversed(lines[: statement.lineno - 1]))
        heading = " ".join(line.strip("# ") for line in reversed(list(before)))
        _, _, after = lines[(statement.end_lineno or 1) - 1].partition("  # ")
        below = ast.get_docstring(ast.Module([following], [])) if following else None
        comment = below or after or heading or above
        comment = " ".join(comment.split()).rstrip(".").replace("``", "`")
        comment = comment[:1].upper() + comment[1:]
        kind = ast.unparse(statement.annotation)
        rows.append((f"`{ast.unparse(statement.target)}: {kind}`", comment))
        above = heading
    if not any(text for _, text in rows):
        return []
    lines = [
        f"- {', '.join(name for name, _ in group)}" + f": {text}." * bool(text)
        for text, group in itertools.groupby(rows, key=lambda row: row[1])
    ]
    return ["\n".join(lines)]


def _is_comment(line: str) -> bool:
    """Whether a line of a program is a comment."""
    return line.lstrip().startswith("# ")


def _is_public(name: str) -> bool:
    """Whether authors use a member: one with a name, or square brackets."""
    return not name.startswith("_") or name == "__getitem__"


def _says_something(member: Any) -> bool:  # Any: whatever a class holds
    """Whether a member has a docstring of its own."""
    kinds = (property, cached_property, classmethod)
    return isinstance(member, kinds) or inspect.isfunction(member)


def _title(name: str, member: Any) -> str:  # Any: a property, method or class method
    """A member's name with its parameters."""
    if isinstance(member, (property, cached_property)):
        return f"`{name}`"
    if name == "__getitem__":
        return f"`[{plain_signature(member).strip('()')}]`"
    return f"`{name}{plain_signature(getattr(member, '__func__', member))}`"


def _member(name: str, member: Any) -> str:  # Any: a property, method or class method
    """The line of one member."""
    # `IBackendInternal.__new__` refuses a class without this one, which is not abstract.
    is_required = name == "get_api_version" or getattr(member, "__isabstractmethod__", False)
    return f"- {_title(name, member)}{' **R**' * is_required}: {summary(member.__doc__)}"


def plain_signature(function: Any) -> str:  # Any: anything with a signature
    """A signature without annotations and without the object itself."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def page() -> str:
    """The page's text."""
    if missing():
        raise ValueError(f"the page about the contract has no chapter for {', '.join(missing())}")
    parts = [HEAD.rstrip()]
    for title, names in CHAPTERS.items():
        parts += [f"## {title}", *(describe(_named(name)) for name in names.split())]
    return "\n\n".join(parts) + "\n"


def _named(name: str) -> Any:  # Any: a class or a function
    """What has a name in the contract, or in the types of its arguments."""
    modules = (armpy.backend, armpy.graph, armpy.tensor)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def missing() -> list[str]:
    """Exported classes and functions that no chapter has."""
    documented = {name for names in CHAPTERS.values() for name in names.split()}
    return [
        name
        for name in armpy.backend.__all__
        if isinstance(thing := getattr(armpy.backend, name), type) or inspect.isfunction(thing)
        if name not in documented
    ]
