"""Prints a machine's devices as Ray counts them."""

from __future__ import annotations

import click

from armpy.cli.commands.devices import list_devices
from armpy.plugins import BackendRegistry, PluginOptions
from armpy_serving.cluster_resources import ray_arguments


def print_arguments(dynamic_backends_path: tuple[str, ...]) -> None:
    """Print the devices of all backends as arguments of ``ray start``."""
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path)
    reports = list_devices(BackendRegistry.discover(options))
    click.echo(ray_arguments([report.facts for report in reports if report.facts is not None]))
