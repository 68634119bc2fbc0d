"""The commands about keys that prepared files are signed with."""

from __future__ import annotations

import click

from armpy.cli.options import MODEL_FILE, WRITABLE_FILE, verbosity_options
from armpy.cli.strict_options import OnceGroup

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415


@click.group(cls=OnceGroup, short_help="Make keys to sign prepared files with, or show them.")
def keys() -> None:
    """Make keys to sign prepared files with, or show them."""


@keys.command(short_help="Make a pair of keys.")
@click.argument("file", type=WRITABLE_FILE)
@click.option("--password", is_flag=True, help="Ask for a password to encrypt the private key.")
@verbosity_options
def generate(file: str, password: bool) -> None:
    """Make a pair of Ed25519 keys: the private one in FILE, the public one in FILE.pub.

    The private key is what armpy compile --sign takes; nobody else must have it. What is printed
    is the public key, for RuntimeOptions(trusted_keys=...) and --trusted-key.
    """
    from armpy.store.archive.signing import generate_keys, key_text

    secret = None
    if password:
        text = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        secret = text.encode()
    _, public = generate_keys(file, secret)
    click.echo(key_text(public))


@keys.command(short_help="Print a public key as text.")
@click.argument("file", type=MODEL_FILE)
@verbosity_options
def show(file: str) -> None:
    """Print the public key in FILE as text, for --trusted-key."""
    from armpy.store.archive.signing import key_text, read_public_key

    click.echo(key_text(read_public_key(file)))
