"""Options of ``armpy keys``."""

from __future__ import annotations

import click

from armpy.cli.command_group import OnceGroup, imported_when_run
from armpy.cli.options import MODEL_FILE, WRITABLE_FILE, verbosity_options


@click.group("keys", cls=OnceGroup)
def command() -> None:
    """Make keys to sign compiled models with, or show them."""


@command.command(short_help="Make a pair of keys.")
@click.argument("file", type=WRITABLE_FILE)
@click.option("--password", is_flag=True, help="Ask for a password to encrypt the private key.")
@verbosity_options
@imported_when_run("armpy.cli.keys.work:generate")
def generate() -> None:
    """Make a pair of Ed25519 keys: the private one in FILE, the public one in FILE.pub.

    The private key is what armpy compile --sign takes; keep it secret. The public key is printed,
    for RuntimeOptions(trusted_keys=...) and --trusted-key.
    """


@command.command(short_help="Print a public key as text.")
@click.argument("file", type=MODEL_FILE)
@verbosity_options
@imported_when_run("armpy.cli.keys.work:show")
def show() -> None:
    """Print the public key in FILE as text, for --trusted-key."""
