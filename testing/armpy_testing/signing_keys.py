"""Pairs of Ed25519 keys in files, made by the package ``cryptography`` alone."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import NamedTuple


class SigningKey(NamedTuple):
    """A pair of keys; the public one is in a file beside the private one, with ``.pub`` added."""

    path: Path
    public: bytes

    @property
    def text(self) -> str:
        """The public key as people write it."""
        return f"ed25519:{base64.b64encode(self.public).decode()}"


def write_signing_key(path: Path, password: bytes = b"") -> SigningKey:
    """Write a pair of keys as ``openssl genpkey -algorithm ed25519`` does.

    `password`: with which the private key is encrypted; it is not if there is none.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    private = ed25519.Ed25519PrivateKey.generate()
    encryption = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    secret = private.private_bytes(pem, serialization.PrivateFormat.PKCS8, encryption)
    public = private.public_key()
    path.write_bytes(secret)
    known = public.public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    path.with_name(f"{path.name}.pub").write_bytes(known)
    raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
    return SigningKey(path, public.public_bytes(*raw))
