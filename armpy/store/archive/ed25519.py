"""Ed25519 by the ``cryptography`` package: all that `armpy.store.archive.signing` needs of it.

It is imported where a key is used, and nowhere else: the package takes longer to import than a
compiled model to load, and may not be there.
"""

from __future__ import annotations

from typing import TypeVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KeyT = TypeVar("KeyT", Ed25519PrivateKey, Ed25519PublicKey)


class UnreadableKeyError(ValueError):
    """Text that is not a key of the kind in question."""


class OtherKeyError(ValueError):
    """A key of another algorithm, whose name is the text."""


class PasswordError(ValueError):
    """A password where none is needed, or none where one is."""


def public_key(pem: bytes) -> bytes:
    """The 32 bytes of a public key."""
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnreadableKeyError(str(error)) from error
    return bytes(_of_kind(key, Ed25519PublicKey).public_bytes_raw())


def sign(message: bytes, pem: bytes, password: bytes | None) -> tuple[bytes, bytes]:
    """The public key, 32 bytes, and the signature, 64, that a private key makes of a message.

    Raises
    ------
    PasswordError
        If the key is encrypted and there is no password, or the other way round;
        UnreadableKeyError, OtherKeyError if it is not such a key, or has another password.
    """
    try:
        key = serialization.load_pem_private_key(pem, password)
    except TypeError as error:
        raise PasswordError(str(error)) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnreadableKeyError(str(error)) from error
    private = _of_kind(key, Ed25519PrivateKey)
    return bytes(private.public_key().public_bytes_raw()), bytes(private.sign(message))


def is_signed(message: bytes, public: bytes, signature: bytes) -> bool:
    """Return whether a key has made this signature of a message."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):  # ValueError: of another length
        return False
    return True


def new_pair(password: bytes | None) -> tuple[bytes, bytes, bytes]:
    """A new private key and its public one, both as PEM, and the latter's 32 bytes."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key()
    cipher = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password)
    )
    encoding = serialization.Encoding.PEM
    secret = private.private_bytes(encoding, serialization.PrivateFormat.PKCS8, cipher)
    known = public.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    return secret, known, bytes(public.public_bytes_raw())


def _of_kind(key: object, kind: type[KeyT]) -> KeyT:
    if not isinstance(key, kind):
        name = type(key).__name__
        raise OtherKeyError(name.removesuffix("PublicKey").removesuffix("PrivateKey"))
    return key
