"""Lists devices for people, for programs and for Ray."""

from __future__ import annotations

import click

from armpy.cli.devices.device_tables import devices_document, list_devices, print_devices
from armpy.cli.printer import print_json
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.serving.cluster_resources import ray_arguments


def devices(for_ray: bool, dynamic_backends_path: tuple[str, ...], as_json: bool) -> None:
    """List the devices of all backends."""
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path)
    found = list_devices(BackendRegistry.discover(options))
    if for_ray:
        click.echo(ray_arguments([report.facts for report in found if report.facts is not None]))
    elif as_json:
        print_json(devices_document(found))
    else:
        print_devices(found)
