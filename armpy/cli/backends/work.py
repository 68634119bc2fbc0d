"""Lists backends, and what their devices are."""

from __future__ import annotations

import click

from armpy.cli.backends.device_tables import devices_document, list_devices, print_devices
from armpy.cli.backends.listing import backends_document, list_backends, print_backends
from armpy.cli.printer import print_json
from armpy.cli.settings import CommandSettings
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.serving.cluster_resources import ray_arguments


def backends(
    settings: CommandSettings,
    with_rejected: bool,
    load: bool,
    capabilities: bool,
    for_ray: bool,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the backends that are installed."""
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path, probe=load)
    if for_ray:
        devices = list_devices(BackendRegistry.discover(options))
        click.echo(ray_arguments([report.facts for report in devices if report.facts is not None]))
        return
    if capabilities:
        devices = list_devices(BackendRegistry.discover(options))
        if as_json:
            print_json(devices_document(devices))
        else:
            print_devices(devices)
        return
    with settings.without_reasons():
        registry = BackendRegistry.discover(options)
        found = list_backends(registry, load=load)
    if as_json:
        print_json(backends_document(found, registry.skipped_paths))
    else:
        print_backends(found, registry.skipped_paths, with_rejected=with_rejected)
