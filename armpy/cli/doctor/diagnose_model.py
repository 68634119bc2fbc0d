"""Finds out whether a model file that is not compiled can be run here, and where it would run."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from armpy.cli.doctor.trials import COMMAND
from armpy.cli.inputs.request import InputRequest
from armpy.cli.inspect.describe import InspectionReport, TensorReport, shape_options
from armpy.cli.inspect.work import inspected
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.registry import find_origin, registry_of
from armpy.compiler.placement import counted_refusals
from armpy.core.dataclass import dataclass
from armpy.core.units import bytes_text, counted
from armpy.errors import ArmpyError
from armpy.plugins.extension_tables import CUSTOM_OPERATORS
from armpy.plugins.extensions import install_line
from armpy.tensor import format_shape


@dataclass(frozen=True, slots=True)
class ModelExamination:
    """Examination of a model file by the doctor."""

    path: str
    facts: dict[str, str]
    """Its size, format, number of layers and, if it can be loaded, where they would run."""
    damage: str
    """Why it, or what is packed into it, cannot be read, and the fix; empty if it can, or if
    operators are missing."""
    missing_operators: dict[str, int]
    """Operators that armpy does not have, and how often the file uses each."""
    open_inputs: tuple[str, ...]
    """Inputs whose shapes the file leaves open, with the shapes."""
    refusals: tuple[str, ...]
    """Why layers would not run on a backend that is preferred to theirs, commonest first."""
    first_start: tuple[str, ...]
    """What was found on disk when it was loaded, and what had to be compiled and is kept."""
    missing: str
    """The command that installs what a backend lacks for its layers; empty if there is none."""
    remedy: str
    """What to do; empty if there is nothing."""

    @property
    def is_ok(self) -> bool:
        """Return whether it can be loaded, and no backend lacks a package for it."""
        return not (self.damage or self.missing_operators or self.missing)


def examine_model(request: CliLoadRequest) -> ModelExamination:
    """Load a model file, as `armpy inspect` does, and say what helps or hinders it here."""
    path = request.model
    facts = {"size": bytes_text(os.stat(path).st_size)}
    try:
        report = inspected(request, InputRequest(), None)
    except ArmpyError as error:
        return ModelExamination(path, facts, str(error), {}, (), (), (), "", "")
    if report.format is not None:
        facts["format"] = f"{report.format.title} (front-end {report.format.front_end})"
        if suffixes := _missed_suffixes(request):
            facts["name"] = f"does not end in {suffixes}, as files of this format do"
    facts["layers"] = str(len(report.facts.layers))
    if not report.facts.problem:
        facts["placement"] = report.placement
    refusals = _refusals(report)
    missing = next((match[0] for match in map(COMMAND.search, refusals) if match), "")
    open_inputs = [tensor for tensor in report.inputs if _is_open(tensor)]
    return ModelExamination(
        path,
        facts,
        _damage(report),
        report.facts.unsupported,
        tuple(f"{tensor.name} {format_shape(tensor.shape)}" for tensor in open_inputs),
        refusals,
        () if report.placed is None else tuple(map(str, report.placed.cache_uses)),
        missing,
        f"Run: {missing}" if missing else _remedy(report, open_inputs),
    )


def _missed_suffixes(request: CliLoadRequest) -> str:
    """The suffixes that files of a model's format have; empty if its name has one."""
    suffixes = find_origin(request, registry_of(request)).front_end.suffixes
    has_one = request.model.lower().endswith(tuple(suffixes))
    return "" if has_one else " or ".join(suffixes)


def _damage(report: InspectionReport) -> str:
    packed = "" if report.metadata is None else report.metadata.damage
    return packed if report.facts.unsupported else report.facts.problem or packed


def _is_open(tensor: TensorReport) -> bool:
    return tensor.shape is None or None in tensor.shape


def _refusals(report: InspectionReport) -> tuple[str, ...]:
    refusals = () if report.placed is None else report.placed.refusals
    return tuple(
        f"{counted(count, 'layer')} {refusal.operation} not on {refusal.backend}: {refusal.text}"
        for count, refusal in counted_refusals(refusals)
    )


def _remedy(report: InspectionReport, open_inputs: Sequence[TensorReport]) -> str:
    if report.facts.unsupported:
        return operators_remedy(report.facts.unsupported)
    if report.placed is None and open_inputs:
        shapes = shape_options(tensor.name for tensor in open_inputs)
        return f"Give the open shapes to see where layers would run: armpy inspect {shapes} FILE"
    return ""


def operators_remedy(missing: Collection[str]) -> str:
    """What to do about operators that armpy does not have: extensions may have custom ones."""
    owners = {CUSTOM_OPERATORS[name] for name in missing if name in CUSTOM_OPERATORS}
    if owners:
        return "; ".join(f"Install {name}: {install_line(name)}" for name in sorted(owners))
    return "Export the model without these operators; armpy inspect shows where they are"
