"""Makes and shows keys that compiled models are signed with."""

from __future__ import annotations

import click

from armpy.store.archive.signing import generate_keys, key_text, read_public_key


def generate(file: str, password: bool) -> None:
    """Make a pair of Ed25519 keys: the private one in FILE, the public one in FILE.pub."""
    secret = None
    if password:
        text = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        secret = text.encode()
    _, public = generate_keys(file, secret)
    click.echo(key_text(public))


def show(file: str) -> None:
    """Print the public key in FILE as text, for --trusted-key."""
    click.echo(key_text(read_public_key(file)))
