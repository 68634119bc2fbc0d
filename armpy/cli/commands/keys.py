"""``armpy keys``: makes and shows keys that compiled models are signed with."""

from __future__ import annotations

import click

from armpy.cli.command_group import OnceGroup
from armpy.cli.options import MODEL_FILE, WRITABLE_FILE, verbosity_options
from armpy.store.archive.signing import generate_keys, key_text, read_public_key


@click.group("keys", cls=OnceGroup)
def command() -> None:
    """Make keys to sign compiled models with, or show them."""


@command.command(short_help="Make a pair of keys.")
@click.argument("file", type=WRITABLE_FILE)
@click.option("--password", is_flag=True, help="Ask for a password to encrypt the private key.")
@verbosity_options
def generate(file: str, password: bool) -> None:
    """Make a pair of Ed25519 keys: the private one in FILE, the public one in FILE.pub.

    The private key is what armpy compile --sign takes; keep it secret. The public key is printed,
    for RuntimeOptions(trusted_keys=...) and --trusted-key.
    """
    secret = None
    if password:
        text = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        secret = text.encode()
    _, public = generate_keys(file, secret)
    click.echo(key_text(public))


@command.command(short_help="Print a public key as text.")
@click.argument("file", type=MODEL_FILE)
@verbosity_options
def show(file: str) -> None:
    """Print the public key in FILE as text, for --trusted-key."""
    click.echo(key_text(read_public_key(file)))
