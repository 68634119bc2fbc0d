"""Lists backends."""

from __future__ import annotations

from armpy.cli.backends.listing import backends_document, list_backends, print_backends
from armpy.cli.printer import print_json
from armpy.cli.settings import CommandSettings
from armpy.plugins import BackendRegistry, PluginOptions


def backends(
    settings: CommandSettings,
    with_rejected: bool,
    load: bool,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the backends that are installed."""
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path, probe=load)
    with settings.without_reasons():
        registry = BackendRegistry.discover(options)
        found = list_backends(registry, load=load)
    if as_json:
        print_json(backends_document(found, registry.skipped_paths))
    else:
        print_backends(found, registry.skipped_paths, with_rejected=with_rejected)
