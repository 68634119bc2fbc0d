"""Builds packs of compiled kernels, and lists those that are found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict

import click

from armpy.backend import NO_OPTIONS, CacheUse, ProgramCheck, ProgramFit, SavedKernels
from armpy.backend.programs import HOST_TARGET
from armpy.cli.inputs.complete import prepare_requested
from armpy.cli.inputs.request import InputRequest
from armpy.cli.load_model import load_model
from armpy.cli.options import EXIT_PROBLEMS, request_of
from armpy.cli.printer import Printer, print_json
from armpy.cli.progress import progress_shown
from armpy.cli.registry import registry_of
from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import why_exposed
from armpy.core.units import bytes_text, counted
from armpy.errors import ArmpyError, InvalidArgumentError, ParserError, UnimplementedError
from armpy.graph import SubgraphView
from armpy.model import input_shapes
from armpy.model.compile_targets import check_targets, targets_of
from armpy.model.save import compiled_views
from armpy.plugins import BackendRegistry, PluginOptions, preferred_backends
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import ask_method
from armpy.store.archive.kernel_packs import SUFFIX, VARIABLE, FoundPack, found_packs, write_pack
from armpy.types import BackendId
from armpy_numba_acc.store.packs import own_packs


@dataclass(frozen=True, slots=True)
class PackRow:
    """A pack that was found, or written."""

    path: str
    backend: str
    target: str
    kernels: int
    size_bytes: int
    is_sound: bool  # whether the file can be used at all, be it on another machine
    reason: str  # why it is not used here; empty if it is


def build(
    context: click.Context,
    models: Sequence[str],
    output: str,
    targets: Sequence[str],
    inputs: InputRequest,
    backends: tuple[str, ...] | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Build packs of the kernels that MODELS need on machines like the targets."""
    request = request_of("", (), dynamic_backends_path, backends=backends)
    known = {
        backend.get_id(): BackendProxy(backend)
        for backend in preferred_backends(registry_of(request), request.options.backends)
    }
    wanted = tuple(dict.fromkeys(targets)) or (HOST_TARGET,)
    check_targets(wanted, known.values())
    _make_folder(output)  # before anything is compiled
    views: dict[BackendId, list[SubgraphView]] = {}
    failures: dict[str, str] = {}
    with progress_shown():
        for path in models:
            try:
                # The graphs stay mapped when it is closed, and its programs are not needed.
                load_request = request_of(path, (), dynamic_backends_path, backends=backends)
                with load_model(load_request, num_shapes=len(inputs.shape_sets)) as model:
                    for one in inputs.for_each_set():
                        prepare_requested(model, one)
                    chosen = input_shapes(model, {})
                    if chosen.unknown and not inputs.says_shapes:
                        text = f"armpy: hint: {path}: nothing is compiled. {chosen.fix}."
                        click.echo(text, err=True)
                    for backend_id, view in compiled_views(model.handle.loaded):
                        views.setdefault(backend_id, []).append(view)
            except ArmpyError as error:
                failures[path] = str(error)
                click.echo(f"armpy: {path} is left out: {error}", err=True)
        written = [
            _written(known[backend_id], backend_views, target, output)
            for backend_id, backend_views in views.items()
            for target in wanted
            if target in targets_of(known[backend_id])
        ]
    packs = [pack for pack in written if pack is not None]
    if not packs:
        raise UnimplementedError(
            "there is nothing to write",
            where="armpy kernels build",
            expected="layers of a backend that compiles kernels which models share",
            actual=f"{sum(map(len, views.values()))} compiled regions",
        )
    if as_json:
        print_json({"packs": [asdict(pack) for pack in packs], "failures": failures})
    else:
        _print_table(packs)
    if failures:
        context.exit(EXIT_PROBLEMS)


def _written(
    backend: BackendProxy, views: Sequence[SubgraphView], target: str, folder: str
) -> PackRow | None:
    """A pack with the kernels of some regions for a target; None if the backend has none."""
    backend_id = backend.get_id()
    kinds = (SavedKernels, type(None))
    programs = backend.get_programs()
    saved: SavedKernels | None = ask_method(
        backend_id, kinds, programs, "save_kernels", views, target, NO_OPTIONS
    )
    if saved is None:
        return None
    path = os.path.join(folder, f"{backend_id}-{target}{SUFFIX}")
    size = write_pack(path, backend_id, saved.about, saved.kernels)
    reason = why_exposed(path, os.stat(path))
    if reason:
        click.echo(f"armpy: warning: {path} will not be used here: {reason}", err=True)
    return PackRow(path, backend_id, target, len(saved.kernels), size, True, reason)


def _make_folder(path: str) -> None:
    """Make the folder that packs go into."""
    reason = ""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        reason = error.strerror or repr(error)
    if reason or not os.access(path, os.W_OK):
        raise InvalidArgumentError(
            "packs cannot be written there",
            where="--output",
            expected="a folder that can be written, or made",
            actual=f"'{path}': {reason or 'it is read-only'}",
        )


def list_command(
    context: click.Context,
    model: str | None,
    inputs: InputRequest,
    shows_all: bool,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the packs that are used here; all that are found if asked for, with the reasons."""
    rows = kernel_packs(PluginOptions(dynamic_backends_path=dynamic_backends_path))
    uses: tuple[CacheUse, ...] = ()
    if model is not None:
        request = request_of(model, (), dynamic_backends_path)
        with progress_shown(), load_model(request) as loaded:
            if inputs.says_shapes:
                prepare_requested(loaded, inputs)
            uses = () if loaded.placement is None else loaded.placement.cache_uses
    if as_json:
        print_json({"packs": [asdict(row) for row in rows], "uses": [asdict(use) for use in uses]})
    else:
        print_packs(rows, shows_all=shows_all)
        for use in uses:
            click.echo(use)
    if not all(row.is_sound for row in rows):
        context.exit(EXIT_PROBLEMS)


def print_packs(rows: Sequence[PackRow], *, shows_all: bool = False) -> None:
    """Print packs for people; sound ones for other machines are counted unless asked for."""
    printer = Printer()
    if not rows:
        setting = os.environ.get(VARIABLE, "").strip()
        where = f" ({VARIABLE}={setting})" if setting else ""
        printer.line(f"there are no kernel packs{where}: make one by armpy kernels build")
        return
    shown = [row for row in rows if shows_all or not row.reason or not row.is_sound]
    if shown:
        _print_table(shown)
    for row in shown:
        if row.reason:
            printer.line(f"{row.path}: not used: {row.reason}")
    if left_out := len(rows) - len(shown):
        packs = counted(left_out, "pack")
        printer.line(f"left out: {packs} for other machines (armpy kernels list --all says why)")


def _print_table(rows: Sequence[PackRow]) -> None:
    """Print what packs hold."""
    table = [
        (row.backend, row.target, row.kernels, bytes_text(row.size_bytes), row.path) for row in rows
    ]
    Printer().table(["backend", "target", "kernels>", "size>", "file"], table)


def kernel_packs(options: PluginOptions) -> list[PackRow]:
    """Every pack that is found."""
    registry = BackendRegistry.discover(options)
    return [_row(pack_file, registry) for pack_file in found_packs(own_packs())]


def _row(pack_file: FoundPack, registry: BackendRegistry) -> PackRow:
    """Return the row of a pack."""
    pack = pack_file.pack
    if pack is None:
        return PackRow(pack_file.path, "", "", 0, 0, False, pack_file.reason)
    target = str(pack.about.get("target"))[:40]
    known = pack_file.path, pack.backend_id, target, len(pack), pack.size_bytes
    try:
        pack.check()
    except ParserError as error:
        return PackRow(*known, False, str(error).removeprefix(f"{pack_file.path}: "))
    return PackRow(*known, True, _why_not(pack.backend_id, pack.about, registry))


def _why_not(backend_id: BackendId, about: dict[str, object], registry: BackendRegistry) -> str:
    """Why a backend does not use a pack here; empty if it does."""
    try:
        programs = BackendProxy(registry.get(backend_id)).get_programs()
        if programs is None:
            return f"{backend_id} saves no programs"
        answer: ProgramCheck = ask_method(
            backend_id, (ProgramCheck,), programs, "check_kernels", about, NO_OPTIONS
        )
    except ArmpyError as error:
        return str(error)
    return "" if answer.fit is ProgramFit.ACCEPTED else answer.reason
