"""Lists devices for people and for programs."""

from __future__ import annotations

from armpy.cli.devices.device_tables import devices_document, list_devices, print_devices
from armpy.cli.printer import print_json
from armpy.plugins import BackendRegistry, PluginOptions


def devices(dynamic_backends_path: tuple[str, ...], as_json: bool) -> None:
    """List the devices of all backends."""
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path)
    found = list_devices(BackendRegistry.discover(options))
    if as_json:
        print_json(devices_document(found))
    else:
        print_devices(found)
