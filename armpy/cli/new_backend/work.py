"""Writes the project of a new backend, and says what comes next."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from armpy.cli.new_backend.new_backend import BackendName, write_project


def new_backend(vendor: str, name: str, folder: str | None, style: str) -> None:
    """Write the project of a backend named <VENDOR>_<NAME>_backend to DIR."""
    names = BackendName(vendor, name)
    target = Path(folder or names.distribution)
    files = write_project(names, style, target)
    click.echo(f"written: {len(files)} files of the backend '{names.backend_id}' to {target}")
    click.echo("next:")
    click.echo(f"  cd {shlex.quote(str(target))}")
    click.echo("  pip install -e '.[test]'")
    click.echo("  pytest")
