"""Output of `inspect`: tables for people, a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from armpy.cli.printer import Printer
from armpy.cli.run.report import placement_in, print_alternatives, print_placement
from armpy.compiler.placement import counted_refusals
from armpy.core.documents import document_of
from armpy.core.units import bytes_text, count_text, type_name
from armpy.profiling.naming import short_names
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.cli.inspect.describe import InspectionReport
    from armpy.inspect import LayerFacts, ModelFacts, TensorFacts


def print_model(
    report: InspectionReport, *, with_layers: bool = False, with_tensors: bool = False
) -> None:
    """Print the description of a model."""
    printer, facts = Printer(), report.facts
    if facts.problem:
        _print_problem(printer, facts)
    if report.metadata is not None and report.metadata.damage:
        printer.marked(f"damaged: {report.metadata.damage}", is_good=False)
    if report.format is not None:
        form = report.format
        source = f" of {form.plugin}" if form.plugin else ""
        size = f", {bytes_text(facts.file_bytes)}" if facts.file_bytes else ""
        parser = f" (front-end {form.front_end}{source})" if form.front_end else ""
        printer.line(f"format: {form.title}{parser}{size}")
        for name, text in form.facts.items():
            printer.line(f"  {name}: {text}")
    learnt = f"{facts.parameters:,} in {bytes_text(facts.parameter_bytes)}"
    work = f"{count_text(facts.macs)} multiply-adds"
    if facts.operations:
        work += f", {count_text(facts.operations)} operations in all"
    printer.line(f"parameters: {learnt}; work of one execution: {work}")
    if not facts.problem:
        print_placement(printer, report.placement, report.placed)
        printer.line(
            f"memory: weights {bytes_text(report.weights_bytes)}, working memory "
            f"{bytes_text(report.arena_bytes)} per execution, state "
            f"{bytes_text(report.variables_bytes)}"
        )
    _print_edges(printer, report)
    _print_operators(printer, facts)
    if report.signatures:
        printer.heading("Signatures")
        printer.table(
            ["name", "inputs", "outputs"],
            [(s.name, ", ".join(s.inputs), ", ".join(s.outputs)) for s in report.signatures],
        )
    _print_placement(printer, report)
    if with_layers:
        _print_layers(printer, facts)
    if with_tensors:
        _print_tensors(printer, facts)
    for section in report.sections:
        printer.heading(f"{section.title} ({section.plugin})")
        printer.table(section.columns, section.rows)


def _print_problem(printer: Printer, facts: ModelFacts) -> None:
    text = facts.problem
    if facts.unsupported:
        total = sum(facts.unsupported.values())
        names = ", ".join(f"{name} x{count}" for name, count in facts.unsupported.items())
        text = f"it does not have {names}; {total} of {len(facts.layers)} layers"
        if facts.fix:
            text = f"{text}. {facts.fix}"
    printer.marked(f"armpy cannot run this model: {text}", is_good=False)


def _print_edges(printer: Printer, report: InspectionReport) -> None:
    """Print inputs and outputs, and the file's metadata about the model and them."""
    for title, tensors in (("Inputs", report.inputs), ("Outputs", report.outputs)):
        printer.heading(title)
        rows = [
            (
                tensor.name,
                format_shape(tensor.shape),
                type_name(tensor.type),
                "" if tensor.scale is None else f"{tensor.scale:.8g}",
                "" if tensor.zero_point is None else tensor.zero_point,
            )
            for tensor in tensors
        ]
        printer.table(["name", "shape", "type", "scale>", "zero point>"], rows)
    if report.metadata is not None:
        records = {"": report.metadata.facts, **report.metadata.tensors}
        said = [(name, *fact) for name, facts in records.items() for fact in facts.items()]
        if said:
            printer.heading("Metadata")
            printer.table(["tensor", "what", "is"], said)


def _print_operators(printer: Printer, facts: ModelFacts) -> None:
    printer.heading("Operators")
    rows = []
    for name, count in facts.operators.items():
        layers = [layer for layer in facts.layers if layer.operator == name]
        parameters = sum(layer.parameters for layer in layers)
        macs = sum(layer.macs for layer in layers)
        parameters_text = f"{parameters:,}" if parameters else ""
        macs_text = count_text(macs) if macs else ""
        share_text = f"{macs / facts.macs:.1%}" if macs else ""
        problem = "not supported" if name in facts.unsupported else ""
        rows.append((count, name, parameters_text, macs_text, share_text, problem))
    columns = ["count>", "operator", "parameters>", "multiply-adds>", "share>", "problem"]
    end = None if facts.unsupported else -1
    printer.table(columns[:end], [row[:end] for row in rows])


def _print_placement(printer: Printer, report: InspectionReport) -> None:
    if report.layers_by_backend:
        printer.heading("Placement")
        printer.table(["layers>", "backend"], [(n, b) for b, n in report.layers_by_backend.items()])
    print_alternatives(printer, report.alternatives)
    refusals = () if report.placed is None else report.placed.refusals
    if refusals:
        printer.heading("Refusals")
        printer.table(
            ["layers>", "operator", "backend", "reason"],
            [(n, r.operation, r.backend, r.text) for n, r in counted_refusals(refusals)],
        )


def _print_layers(printer: Printer, facts: ModelFacts) -> None:
    printer.heading("Layers")
    has_programs = any(program.operation == "PreCompiled" for program in facts.programs)
    columns = {
        "#>": [str(layer.index) for layer in facts.layers],
        "operator": [layer.operator for layer in facts.layers],
        "output": [format_shape(layer.shape) if layer.outputs else "" for layer in facts.layers],
        "type": [type_name(layer.type) for layer in facts.layers],
        "parameters>": [
            f"{layer.parameters:,}" if layer.parameters else "" for layer in facts.layers
        ],
        "multiply-adds>": [count_text(layer.macs) if layer.macs else "" for layer in facts.layers],
        "moved>": [bytes_text(layer.bytes_moved) for layer in facts.layers],
        "program": [", ".join(map(str, layer.programs)) for layer in facts.layers],
    }
    if not has_programs:
        del columns["program"]
    names = _names(printer, [layer.name for layer in facts.layers])
    columns["where"] = [_where(layer, names) for layer in facts.layers]
    columns["name"] = [_named(layer.inside, names[layer.name]) for layer in facts.layers]
    printer.table(list(columns), zip(*columns.values(), strict=True))


def _named(inside: str, name: str) -> str:
    return f"{inside}: {name}" if inside else name


def _where(layer: LayerFacts, names: dict[str, str]) -> str:
    runs = " and ".join(layer.backends)
    if layer.refusals and layer.backends:
        runs += "; " + "; ".join(f"not {entry.backend}: {entry.text}" for entry in layer.refusals)
    said = {
        "runs": runs,
        "fused": f"{runs}, in {names.get(layer.into, layer.into)}" if runs else "",
        "constant": "computed at load",
        "dropped": "nothing to do",
        "state": "kept by armpy",
        "unsupported": "NOT SUPPORTED",
        "unplaced": "",
    }[layer.status]
    return said or (f"in {names.get(layer.into, layer.into)}" if layer.into else "not known")


def _print_tensors(printer: Printer, facts: ModelFacts) -> None:
    printer.heading("Tensors")
    shown = {
        "#>": [str(tensor.index) for tensor in facts.tensors],
        "shape": [format_shape(tensor.shape) for tensor in facts.tensors],
        "type": [type_name(tensor.type) for tensor in facts.tensors],
        "bytes>": ["" if t.size_bytes is None else f"{t.size_bytes:,}" for t in facts.tensors],
        "role": [tensor.role for tensor in facts.tensors],
        "quantisation": [_quantization(tensor) for tensor in facts.tensors],
        "from>": ["" if t.producer is None else str(t.producer) for t in facts.tensors],
        "to": [", ".join(map(str, tensor.consumers)) for tensor in facts.tensors],
    }
    names = _names(printer, [tensor.name for tensor in facts.tensors])
    shown["name"] = [_named(tensor.inside, names[tensor.name]) for tensor in facts.tensors]
    printer.table(list(shown), zip(*shown.values(), strict=True))


def _quantization(tensor: TensorFacts) -> str:
    """Return how stored integers stand for real numbers, in a few words."""
    if not tensor.scales:
        return ""
    if len(tensor.scales) > 1:
        return f"{len(tensor.scales)} scales along axis {tensor.axis}"
    point = tensor.zero_points[0] if tensor.zero_points else 0
    return f"{tensor.scales[0]:.6g} * (q {'+' if point < 0 else '-'} {abs(point)})"


def _names(printer: Printer, names: Sequence[str]) -> dict[str, str]:
    """Names as they are shown: short on terminals, else whole."""
    return short_names(names) if printer.is_terminal else {name: name for name in names}


def model_document(model: str, report: InspectionReport) -> dict[str, object]:
    """The description of a model as a JSON document; its placement is an object, as of a run."""
    document, facts = document_of(replace(report, placed=None)), document_of(report.facts)
    del document["facts"], document["placed"]
    document["placement"] = placement_in(report.placement, report.placed)
    # Inputs and outputs are those of the network; those of the file are places of tensors.
    facts["file_inputs"], facts["file_outputs"] = facts.pop("inputs"), facts.pop("outputs")
    return {"model": model, **document, **facts}
