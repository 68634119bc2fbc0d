"""Signatures of prepared files: Ed25519 (RFC 8032), by the ``cryptography`` package.

Notes
-----
What is signed is a file's first 64 bytes, which hold the SHA-256 of its manifest, and so of
everything. Other uses of a key sign other messages, as each begins with what it is for.

A key has one way of being written for people: ``ed25519:`` and its 32 bytes in Base64. It is short
enough to stand for itself in messages and settings.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from armpy.errors import InvalidArgumentError, UnimplementedError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# The package takes longer to import than a prepared model to load, and may not be there.
# ruff: noqa: PLC0415

KeySource: TypeAlias = str | os.PathLike[str] | bytes
"""A public key: a PEM file's path, the 32 bytes, or the text ``ed25519:BASE64``."""

KEY_BYTES = 32
SIGNATURE_BYTES = 64
NO_KEY = bytes(KEY_BYTES)
"""Stands in a file that is not signed."""

NO_SIGNATURE = bytes(SIGNATURE_BYTES)
"""Stands in a file that is not signed."""

# In front of every message, so that a signature for something else is none for a file.
_PURPOSE = b"armpy prepared file 2\0"
_TEXT = "ed25519:"
_PUBLIC_SUFFIX = ".pub"
_INSTALL = "Run: pip install 'armpy[sign]'"


class FileSignature(NamedTuple):
    """A signature, and the key that it can be checked with.

    Parameters
    ----------
    public_key : bytes, 32
    signature : bytes, 64
    """

    public_key: bytes
    signature: bytes


class WrongSignatureError(Exception):
    """A signature that its key has not made, or not of this message."""


def key_text(public_key: bytes) -> str:
    """A public key as people write it: ``ed25519:BASE64``."""
    return _TEXT + base64.b64encode(public_key).decode()


def sign(
    message: bytes, key_file: str | os.PathLike[str], password: bytes | None = None
) -> FileSignature:
    """Sign a prepared file.

    Parameters
    ----------
    message : bytes
        The file's first 64 bytes.
    key_file : path
        A private key, PEM, as `generate_keys` and ``openssl genpkey -algorithm ed25519`` write it.
    password : bytes, optional
        With which the key is encrypted.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read, or holds no such key, or the password is another one.
    UnimplementedError
        If the ``cryptography`` package is not installed.
    """
    private = _private_key(key_file, password)
    public = bytes(private.public_key().public_bytes_raw())
    return FileSignature(public, bytes(private.sign(_PURPOSE + message)))


def verify(message: bytes, signature: FileSignature) -> None:
    """Check a signature; whether its key is to be trusted is another question.

    Raises
    ------
    WrongSignatureError
        If the key has not signed this message.
    UnimplementedError
        If the ``cryptography`` package is not installed.
    """
    _require("a signature is checked")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = Ed25519PublicKey.from_public_bytes(signature.public_key)
        public.verify(signature.signature, _PURPOSE + message)
    except (InvalidSignature, ValueError) as error:  # ValueError: of another length
        raise WrongSignatureError(
            f"{key_text(signature.public_key)} has not made this signature"
        ) from error


def generate_keys(path: str | os.PathLike[str], password: bytes | None = None) -> tuple[str, bytes]:
    """Make a pair of keys.

    Parameters
    ----------
    path : path
        Where the private key is written (PEM, PKCS 8), for its user alone; the public key, for
        everybody, goes beside it with ``.pub`` added. Neither may be there.
    password : bytes, optional
        To encrypt the private key with.

    Returns
    -------
    public_path : str
    public_key : bytes, 32

    Raises
    ------
    InvalidArgumentError
        If a file is there or cannot be written, or the password is empty.
    UnimplementedError
        If the ``cryptography`` package is not installed.
    """
    _require("keys are made")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if password == b"":
        raise InvalidArgumentError("the password is empty", fix="Leave it out, or choose one")
    name = os.fspath(path)
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
    # The private one first: if its name is taken, nothing has been written.
    _write_new(name, secret, 0o600)
    try:
        _write_new(name + _PUBLIC_SUFFIX, known, 0o644)
    except BaseException:
        # Of half a pair nobody would know that it is one, and the name would be taken.
        os.unlink(name)
        raise
    return name + _PUBLIC_SUFFIX, bytes(public.public_bytes_raw())


def trusted_keys(sources: Iterable[KeySource]) -> tuple[bytes, ...]:
    """Public keys that are given in any of the ways that `read_public_key` takes."""
    if isinstance(sources, str | bytes | os.PathLike):
        raise InvalidArgumentError(
            "the option has the wrong type",
            where="trusted_keys",
            expected="a sequence of keys",
            actual=repr(sources),
            fix=f"Write [{sources!r}]",
        )
    return tuple(dict.fromkeys(map(read_public_key, sources)))


def read_public_key(source: KeySource) -> bytes:
    """The 32 bytes of a public key.

    Parameters
    ----------
    source : path, str or bytes
        A PEM file, as ``openssl pkey -pubout`` and `generate_keys` write it, which nobody else may
        be able to change; the text ``ed25519:BASE64``; or the 32 bytes.

    Raises
    ------
    InvalidArgumentError
        If it is none of these.
    UnimplementedError
        If it is a file, and the ``cryptography`` package is not installed.
    """
    if isinstance(source, bytes):
        key, where = source, "trusted_keys"
    elif isinstance(source, str) and source.startswith(_TEXT):
        key, where = _decoded(source), f"trusted_keys, {source!r}"
    elif isinstance(source, str | os.PathLike):
        key, where = _read_public_file(os.fspath(source)), os.fspath(source)
    else:
        raise InvalidArgumentError(
            "this is no public key",
            where="trusted_keys",
            expected=f"a PEM file's path, {KEY_BYTES} bytes, or the text {_TEXT}BASE64",
            actual=repr(source)[:80],
        )
    # Zeros stand in files that are not signed, and must not be anybody's key.
    if len(key) != KEY_BYTES or key == NO_KEY:
        raise InvalidArgumentError(
            "this is no Ed25519 public key",
            where=where,
            expected=f"{KEY_BYTES} bytes that are not all zero",
            actual=f"{len(key)} bytes" if len(key) != KEY_BYTES else "zeros",
        )
    return key


def _decoded(text: str) -> bytes:
    """The bytes of a key that is written as text."""
    try:
        return base64.b64decode(text[len(_TEXT) :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidArgumentError(
            "this is no public key",
            where="trusted_keys",
            expected=f"{_TEXT} and the 44 characters of {KEY_BYTES} bytes in Base64",
            actual=repr(text)[:80],
        ) from error


def _read_public_file(path: str) -> bytes:
    """The key in a PEM file that nobody else can change."""
    from armpy.core.file_ownership import why_exposed

    _require(f"the key {path} is read", fix=f"{_INSTALL}, or give the key as {_TEXT}BASE64")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        with open(path, "rb") as file:
            # Of what was opened and is read, not of what the path may lead to a moment later.
            reason = why_exposed(path, os.fstat(file.fileno()))
            text = file.read()
    except OSError as error:
        raise _bad_key(path, f"the key cannot be read: {error.strerror}") from error
    if reason:
        raise _bad_key(path, f"the key cannot be trusted, as others can change it: {reason}")
    try:
        key = load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm) as error:
        is_private = b"PRIVATE KEY-----" in text
        actual = "a private key" if is_private else ""
        raise _bad_key(path, "this is no public key", "a public key, PEM", actual) from error
    if not isinstance(key, Ed25519PublicKey):
        kind = type(key).__name__.removesuffix("PublicKey")
        raise _bad_key(path, "the key is of another kind", "an Ed25519 key", kind)
    return bytes(key.public_bytes_raw())


def _private_key(path: str | os.PathLike[str], password: bytes | None) -> Ed25519PrivateKey:
    """The private key in a PEM file."""
    _require("files are signed")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            text = file.read()
    except OSError as error:
        raise _bad_key(name, f"the key cannot be read: {error.strerror}") from error
    try:
        key = load_pem_private_key(text, password)
    except TypeError as error:  # there is no password where one is needed, or the other way round
        failed = "the key is encrypted" if password is None else "the key is not encrypted"
        fix = "Give its password" if password is None else "Leave the password out"
        raise InvalidArgumentError(failed, where=name, fix=fix) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        if password is not None:
            raise _bad_key(name, "the key cannot be read, or has another password") from error
        actual = "a public key" if b"PUBLIC KEY-----" in text else ""
        raise _bad_key(name, "this is no private key", "a private key, PEM", actual) from error
    if not isinstance(key, Ed25519PrivateKey):
        kind = type(key).__name__.removesuffix("PrivateKey")
        raise _bad_key(name, "the key is of another kind", "an Ed25519 key", kind)
    return key


def _write_new(path: str, contents: bytes, mode: int) -> None:
    """Write a file that is not there yet."""
    try:
        # With its mode from the beginning: a later chmod would leave a moment for others to read.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(handle, "wb") as file:
            file.write(contents)
    except OSError as error:
        raise InvalidArgumentError(
            f"the key cannot be written: {error.strerror}", where=path
        ) from error


def _bad_key(path: str, failed: str, expected: str = "", actual: str = "") -> InvalidArgumentError:
    """The error for a key's file that cannot be used."""
    return InvalidArgumentError(failed, where=path, expected=expected, actual=actual)


def _require(what: str, fix: str = _INSTALL) -> None:
    """Check that the package is there."""
    try:
        importlib.import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    except ImportError as error:
        raise UnimplementedError(
            f"{what} with the package cryptography, which cannot be imported ({error})",
            where="signing",
            fix=fix,
        ) from error
