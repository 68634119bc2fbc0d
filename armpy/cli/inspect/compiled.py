"""Describes compiled models: identity, author, contents, and the parts used here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from armpy.cli.inspect.compiled_file import (
    MissingProgram,
    PreparedContents,
    ProgramReport,
)
from armpy.cli.inspect.describe import (
    FormatReport,
    InspectionReport,
    SignatureReport,
    TensorReport,
    edge_of,
    metadata_report,
    report_of,
)
from armpy.cli.load_request import COMMAND_OPTIONS, CliLoadRequest
from armpy.cli.printer import Printer
from armpy.cli.registry import no_such_signature, registry_of
from armpy.compiler import OptimizedNetwork
from armpy.compiler.files.reading import NetworkContents
from armpy.core.dataclass import dataclass
from armpy.core.units import bytes_text
from armpy.errors import InvalidArgumentError, UnimplementedError
from armpy.inspect import describe_network
from armpy.inspect.inferred_shapes import evaluator_of
from armpy.model.archive.examined_programs import Machine, ProgramExamination, examine_programs
from armpy.model.archive.metadata import read_metadata
from armpy.model.archive.reload import read_signature
from armpy.plugins import BackendRegistry
from armpy.store.archive.container import VERSION, Container
from armpy.store.archive.signing import (
    NO_KEY,
    FileSignature,
    WrongSignatureError,
    key_text,
    trusted_keys,
    verify,
)
from armpy.store.archive.trust import TRUSTED, open_judged
from armpy.tensor import format_shape

_OF_READING = ("signature", "trusted_keys", "code")
"""Options that say how a file is read, and nothing of how its network runs."""

_SHOWN = ("isa", "version", "threads", "architecture")
"""What backends say of programs that is shown in the table, where they say it; JSON has all."""


@dataclass(frozen=True, slots=True)
class NetworkReport:
    """A network in a compiled model."""

    signature: str | None  # None for a model without signatures
    section: str
    inputs: tuple[TensorReport, ...]
    outputs: tuple[TensorReport, ...]
    layers: int


@dataclass(frozen=True, slots=True)
class FileReport:
    """Report about a compiled model."""

    version: int  # of the layout
    armpy: str  # version that has written it
    signer: str  # the signer's public key; empty if unsigned
    signature: str  # {"none", "right", "wrong", "not checked"}
    uses_code: bool  # whether code in it is used, as the command line says whom to trust
    trust: str  # why, or why not
    size_bytes: int
    sections: dict[str, int]  # bytes of each
    networks: tuple[NetworkReport, ...]
    programs: tuple[ProgramReport, ...]
    uses: tuple[ProgramExamination, ...]  # how this machine would use each program
    left_out: tuple[MissingProgram, ...]
    starts_at_once: bool  # whether it runs without making the network of the graph


def inspect_prepared(request: CliLoadRequest) -> tuple[InspectionReport, FileReport]:
    """Describe a compiled model, without loading it."""
    _check_asked(request)
    options = request.options
    keys, code = trusted_keys(options.trusted_keys or ()), options.code or TRUSTED
    container, verdict = open_judged(request.model, keys, code)
    contents = PreparedContents(container)
    networks, chosen = _networks(contents, options.signature)
    is_signed = container.key != NO_KEY
    registry = registry_of(request)
    withheld = "" if verdict.uses_code else verdict.reason
    uses, _ = examine_programs(container, Machine(registry), withheld)
    report = FileReport(
        VERSION,
        str(contents.manifest.get("armpy", "")),
        key_text(container.key) if is_signed else "",
        _signature(container) if is_signed else "none",
        verdict.uses_code,
        verdict.reason,
        container.data.size,
        contents.sections,
        networks,
        contents.programs,
        uses,
        contents.left_out,
        isinstance(contents.manifest.get("quick"), dict),
    )
    return _model(contents, chosen, networks, registry), report


def _check_asked(request: CliLoadRequest) -> None:
    """Check that nothing is asked that a file has decided already."""
    asked = {
        info.flags[0]: not info.is_neutral(getattr(request.options, name))
        for name, info in COMMAND_OPTIONS.items()
        if name not in _OF_READING
    }
    asked["--backend-option"] = bool(request.backend_options)
    asked["--front-end-option"] = bool(request.front_end_options)
    for option, is_asked in asked.items():
        if is_asked:
            raise InvalidArgumentError(
                "a compiled model is shown as it was made",
                where=option,
                fix="Leave it out; armpy run takes it",
            )


def _networks(
    contents: PreparedContents, signature: str | None
) -> tuple[tuple[NetworkReport, ...], NetworkContents[OptimizedNetwork]]:
    """All networks, and the contents of the one that is asked for."""
    reports, chosen = [], None
    for record in contents.networks:
        name, section = record["name"], record["section"]
        network = read_signature(contents.container, record)
        num_layers = len(network.graph.layers)
        reports.append(NetworkReport(name, section, *edge_of(network.graph), num_layers))
        if chosen is None and signature in (None, name):
            chosen = network
    if chosen is None:
        names = [network.signature for network in reports if network.signature is not None]
        raise no_such_signature(str(signature), names)
    return tuple(reports), chosen


def _model(
    contents: PreparedContents,
    chosen: NetworkContents[OptimizedNetwork],
    networks: tuple[NetworkReport, ...],
    registry: BackendRegistry,
) -> InspectionReport:
    """Return the inputs, outputs and placement of the chosen network."""
    evaluator = None if chosen.graph.is_fully_shaped else evaluator_of(registry)
    optimized = [] if chosen.optimized is None else [chosen.optimized]
    placement = optimized[0].placement if optimized else None
    if placement is not None:
        # Caches were looked into where the file was made.
        placement = replace(placement, cache_uses=())
    described = describe_network(chosen.graph, placement, optimized, evaluator=evaluator)
    signatures = tuple(
        SignatureReport(
            network.signature,
            tuple(tensor.name for tensor in network.inputs),
            tuple(tensor.name for tensor in network.outputs),
        )
        for network in networks
        if network.signature is not None
    )
    kind = str(contents.manifest.get("kind", ""))
    facts = {"title": str(contents.manifest.get("title", "")), "holds": kind}
    return replace(
        report_of(chosen.graph, placement, described),
        signatures=signatures,
        format=FormatReport("", "compiled by armpy", "", facts),
        metadata=metadata_report(partial(read_metadata, contents.container)),
    )


def _shaped(tensors: Sequence[TensorReport]) -> str:
    return ", ".join([f"{tensor.name} {format_shape(tensor.shape)}" for tensor in tensors])


def _signature(container: Container) -> str:
    """Return whether the signature of a signed file is right."""
    try:
        verify(container.signed, FileSignature(container.key, container.signature))
    except WrongSignatureError:
        return "wrong"
    except UnimplementedError:
        return "not checked"
    return "right"


def print_prepared(report: FileReport) -> None:
    """Print what a compiled model is."""
    printer = Printer()
    printer.heading(f"Compiled model, version {report.version}, by armpy {report.armpy}")
    signer = f"{report.signature}, by {report.signer}" if report.signer else "none"
    printer.line(f"signature: {signer}")
    printer.line(f"code: {'used' if report.uses_code else 'not used'}: {report.trust}")
    printer.line(f"starts at once: {'yes' if report.starts_at_once else 'no'}")
    printer.heading("Networks")
    printer.table(
        ["signature", "inputs", "outputs", "layers>"],
        [
            (n.signature or "", _shaped(n.inputs), _shaped(n.outputs), n.layers)
            for n in report.networks
        ],
    )
    printer.heading("Programs")
    rows = [_program_row(*pair) for pair in zip(report.programs, report.uses, strict=True)]
    printer.table(
        ["backend", "target", "layers>", "first", "code>", "data>", "about", "here"], rows
    )
    for missing in report.left_out:
        printer.line(str(missing))
    printer.heading(f"Sections ({bytes_text(report.size_bytes)})")
    printer.table(["bytes>", "section"], [(n, name) for name, n in report.sections.items()])


def _program_row(program: ProgramReport, use: ProgramExamination) -> tuple[object, ...]:
    about = []
    for name in _SHOWN:
        value = program.about.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, str | int):
            about.append(f"{name} {value}")
    return (
        program.backend,
        program.target,
        program.layers,
        program.first,
        bytes_text(program.code_bytes),
        bytes_text(program.data_bytes),
        ", ".join(about),
        use.status + (f": {use.reason}" if use.reason else ""),
    )
