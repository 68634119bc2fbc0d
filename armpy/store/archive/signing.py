"""Signatures of compiled models: Ed25519 (RFC 8032), by the ``cryptography`` package.

The signature is over a file's first 64 bytes, which hold the SHA-256 of its manifest, and so of
everything. Other uses of a key sign other messages, as each begins with its purpose.

A key has one way of being written for people: ``ed25519:`` and its 32 bytes in Base64. It is short
enough to stand for itself in messages and settings.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Iterable
from types import ModuleType
from typing import NamedTuple, TypeAlias

from armpy.core.arguments import check_several
from armpy.core.file_digest import BYTES, READ_BYTES
from armpy.core.file_ownership import why_exposed
from armpy.core.installation import install_command
from armpy.errors import InvalidArgumentError, UnimplementedError

KeySource: TypeAlias = str | os.PathLike[str] | bytes
"""A public key: a PEM file's path, the 32 bytes, or the text ``ed25519:BASE64``."""

KEY_BYTES = 32
SIGNATURE_BYTES = 64
NO_KEY = bytes(KEY_BYTES)
"""Stands in a file that is not signed."""

NO_SIGNATURE = bytes(SIGNATURE_BYTES)
"""Stands in a file that is not signed."""

# In front of every message, so that a signature for something else is none for a file.
_PURPOSE = b"armpy compiled model 2\0"
_TEXT = "ed25519:"
_PUBLIC_SUFFIX = ".pub"
_MOST_KEY_BYTES = 1 << 16


class FileSignature(NamedTuple):
    """A signature, and the key that it can be checked with."""

    public_key: bytes
    signature: bytes


class WrongSignatureError(Exception):
    """A signature that its key has not made, or not of this message."""


def key_text(public_key: bytes) -> str:
    """A public key as people write it: ``ed25519:BASE64``."""
    return _TEXT + base64.b64encode(public_key).decode()


def sign(
    message: bytes,  # the file's first 64 bytes
    # A private key, PEM, as `generate_keys` and ``openssl genpkey -algorithm ed25519`` write it.
    key_file: str | os.PathLike[str],
    password: bytes | None = None,  # with which the key is encrypted
) -> FileSignature:
    """Sign a compiled model.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read, or holds no such key, or the password is another one.
    UnimplementedError
        If the ``cryptography`` package is not installed.
    """
    ed25519 = _ed25519("files are signed")
    name = os.fspath(key_file)
    try:
        with open(name, "rb") as file:
            text = file.read()
    except OSError as error:
        raise _bad_key(name, f"the key cannot be read: {error.strerror}") from error
    try:
        return FileSignature(*ed25519.sign(_PURPOSE + message, text, password))
    except ed25519.PasswordError as error:
        failed = "the key is encrypted" if password is None else "the key is not encrypted"
        fix = "Give its password" if password is None else "Leave the password out"
        raise InvalidArgumentError(failed, where=name, fix=fix) from error
    except ed25519.UnreadableKeyError as error:
        if password is not None:
            raise _bad_key(name, "the key cannot be read, or has another password") from error
        actual = "a public key" if b"PUBLIC KEY-----" in text else ""
        raise _bad_key(name, "this is not a private key", "a private key, PEM", actual) from error
    except ed25519.OtherKeyError as error:
        raise _bad_key(name, "the key is of another kind", "an Ed25519 key", str(error)) from error


def verify(message: bytes, signature: FileSignature) -> None:
    """Check a signature; whether its key is to be trusted is another question.

    Raises
    ------
    WrongSignatureError
        If the key has not signed this message.
    UnimplementedError
        If the ``cryptography`` package is not installed.
    """
    ed25519 = _ed25519("a signature is checked")
    if not ed25519.is_signed(_PURPOSE + message, signature.public_key, signature.signature):
        raise WrongSignatureError(f"{key_text(signature.public_key)} has not made this signature")


def generate_keys(
    # Where the private key is written (PEM, PKCS 8), for its user alone; the public key, for
    # everybody, goes beside it with ``.pub`` added. Neither may be there.
    path: str | os.PathLike[str],
    password: bytes | None = None,  # to encrypt the private key with
) -> tuple[str, bytes]:
    """Make a pair of keys.

    Raises
    ------
    InvalidArgumentError
        If a file is there or cannot be written, or the password is empty.
    UnimplementedError
        If the ``cryptography`` package is not installed.
    """
    ed25519 = _ed25519("keys are made")
    if password == b"":
        raise InvalidArgumentError("the password is empty", fix="Leave it out, or choose one")
    name = os.fspath(path)
    secret, known, public = ed25519.new_pair(password)
    # The private one first: if its name is taken, nothing has been written.
    _write_new(name, secret, 0o600)
    try:
        _write_new(name + _PUBLIC_SUFFIX, known, 0o644)
    except BaseException:
        # Half a pair would be useless, and the name would be taken.
        os.unlink(name)
        raise
    return name + _PUBLIC_SUFFIX, public


def trusted_keys(sources: Iterable[KeySource]) -> tuple[bytes, ...]:
    """Public keys that are given in any of the ways that `read_public_key` takes."""
    check_several(sources, "trusted_keys", "a sequence of keys", str, bytes, os.PathLike)
    return tuple(dict.fromkeys(map(read_public_key, sources)))


def read_public_key(
    # A PEM file, as ``openssl pkey -pubout`` and `generate_keys` write it, which no other user may
    # be able to change; the text ``ed25519:BASE64``; or the 32 bytes.
    source: KeySource,
) -> bytes:
    """The 32 bytes of a public key.

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
            "this is not a public key",
            where="trusted_keys",
            expected=f"a PEM file's path, {KEY_BYTES} bytes, or the text {_TEXT}BASE64",
            actual=repr(source)[:80],
        )
    # Zeros stand in files that are not signed, and must not be anybody's key.
    if len(key) != KEY_BYTES or key == NO_KEY:
        raise InvalidArgumentError(
            "this is not an Ed25519 public key",
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
            "this is not a public key",
            where="trusted_keys",
            expected=f"{_TEXT} and the 44 characters of {KEY_BYTES} bytes in Base64",
            actual=repr(text)[:80],
        ) from error


def _read_public_file(path: str) -> bytes:
    """Read the key in a PEM file that no other user can change."""
    fix = f"{_install_fix()}, or give the key as {_TEXT}BASE64"
    ed25519 = _ed25519(f"the key {path} is read", fix)
    try:
        # A FIFO without a writer would be waited for.
        handle = os.open(path, READ_BYTES)
        with open(handle, "rb") as file:
            # Of the opened file, not of the one that the path may lead to a moment later.
            info = os.fstat(handle)
            reason = why_exposed(path, info)
            is_file = stat.S_ISREG(info.st_mode)
            text = file.read(_MOST_KEY_BYTES + 1) if is_file else b""
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        failed = f"the key cannot be read: {why}"
        raise _bad_key(path, failed, f"a PEM file, or a key as text ({_TEXT}...)") from error
    if not is_file or len(text) > _MOST_KEY_BYTES:
        actual = f"more than {_MOST_KEY_BYTES} bytes" if is_file else "no regular file"
        expected = f"a regular file of at most {_MOST_KEY_BYTES} bytes"
        raise _bad_key(path, "the key cannot be read", expected, actual)
    if reason:
        failed = f"the key cannot be trusted, as others can change it: {reason}"
        raise _bad_key(path, failed, fix="Let only yourself and root change it and its folders")
    try:
        public: bytes = ed25519.public_key(text)
    except ed25519.UnreadableKeyError as error:
        is_private = b"PRIVATE KEY-----" in text
        actual = "a private key" if is_private else ""
        raise _bad_key(path, "this is not a public key", "a public key, PEM", actual) from error
    except ed25519.OtherKeyError as error:
        raise _bad_key(path, "the key is of another kind", "an Ed25519 key", str(error)) from error
    return public


def _write_new(path: str, contents: bytes, mode: int) -> None:
    """Write a file that is not there yet."""
    try:
        # With its mode from the beginning: a later chmod would leave a moment for others to read.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BYTES, mode)
    except OSError as error:
        raise _unwritten(path, error) from error
    try:
        with open(handle, "wb") as file:
            file.write(contents)
    except OSError as error:
        os.unlink(path)  # half a key would stand in the way of the next one
        raise _unwritten(path, error) from error


def _unwritten(path: str, error: OSError) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the key cannot be written: {error.strerror}",
        where=path,
        fix="Give a new name, in a folder that exists and has free space",
    )


def _bad_key(
    path: str,
    failed: str,
    expected: str = "",
    actual: str = "",
    fix: str = "Check the path, or make a pair of keys with 'armpy keys generate FILE'",
) -> InvalidArgumentError:
    """The error for a key's file that cannot be used."""
    return InvalidArgumentError(failed, where=path, expected=expected, actual=actual, fix=fix)


def _install_fix() -> str:
    return f"Run: {install_command({'armpy[sign]': '.'})}"


def _ed25519(noun: str, fix: str = "") -> ModuleType:
    """The module that needs the package."""
    try:
        from armpy.store.archive import ed25519  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise UnimplementedError(
            f"{noun} with the package cryptography, which cannot be imported ({error})",
            where="signing",
            fix=fix or _install_fix(),
        ) from error
    return ed25519
