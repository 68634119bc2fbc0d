"""Whether the code in a prepared file may be used.

Notes
-----
Whoever can write to a file that is loaded can make the process do anything, so code is taken from
files that nobody else can have written: by where they lie, as with backends, or by a signature.
What is judged is what was opened, by its descriptor and by the header that is in memory already;
whatever happens to the file afterwards, `Container.checked` copies code before its checksum is
computed, and the checksums are what the signature is over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from armpy.errors import InvalidArgumentError, ParserError
from armpy.places import why_exposed
from armpy.prepared.signing import (
    NO_KEY,
    NO_SIGNATURE,
    Signature,
    WrongSignatureError,
    key_text,
    verify,
)

TRUSTED = "trusted"
"""Code is taken from the user's own places, and from files that a trusted key has signed."""

SIGNED = "signed"
"""Code is taken only from files that a trusted key has signed."""

NEVER = "never"
"""No code is taken; networks are compiled from the graphs in the files."""

CODE_CHOICES = (TRUSTED, SIGNED, NEVER)

_GRAPH_ALONE = "code='never' takes the graph alone"


class SignedFile(Protocol):
    """What is judged of a file that was opened: a `Container`.

    Attributes
    ----------
    where : str
        What messages call it.
    info : os.stat_result or None
        Of its descriptor; None for bytes in memory.
    signed : bytes, 64
        What a signature is over.
    key, signature : bytes
        Ed25519 public key and signature; zeros if it is not signed.
    """

    where: str
    info: os.stat_result | None
    signed: bytes
    key: bytes
    signature: bytes


class Verdict(NamedTuple):
    """Whether the code in a prepared file may be used.

    Parameters
    ----------
    uses_code : bool
    reason : str
        Why, or why not, for people; without a full stop.
    error : ParserError, optional
        To raise where code that may not be used stands for a file that may not be loaded.
    """

    uses_code: bool
    reason: str
    error: ParserError | None = None

    def check(self) -> None:
        """Raise the error of a file that is refused.

        Raises
        ------
        ParserError
        """
        if self.error is not None:
            raise self.error


def judge(
    file: SignedFile,
    path: str | os.PathLike[str] | None,
    trusted_keys: Sequence[bytes] = (),
    code: str = TRUSTED,
) -> Verdict:
    """Judge whether the code in a file may be used.

    Parameters
    ----------
    file : SignedFile
        The file, as it was opened.
    path : path, optional
        By which it was opened; None for bytes in memory.
    trusted_keys : sequence of (bytes, 32)
        Ed25519 public keys.
    code : {"trusted", "signed", "never"}

    Raises
    ------
    UnimplementedError
        If there is a signature by a trusted key, and the ``cryptography`` package is not
        installed.

    Notes
    -----
    A signature by a trusted key has to be right, wherever the file lies: it says that the file is
    what its signer has made, and it is not. One by another key says nothing, as everybody can make
    keys. Without one, files in the user's own places are still taken: keys add places that files
    may come from, and take none away unless `code` is "signed".
    """
    if code == NEVER:
        return Verdict(False, "code is not wanted (code='never')")
    signature = Signature(file.key, file.signature)
    signer = key_text(signature.public_key)
    if signature.public_key in trusted_keys:
        try:
            verify(file.signed, signature)
        except WrongSignatureError:
            return _refused(
                file.where,
                "its signature is wrong: the file is not what was signed",
                f"a signature by the trusted key {signer}",
                f"Get the file anew from whoever has signed it; {_GRAPH_ALONE}",
            )
        return Verdict(True, f"it is signed by the trusted key {signer}")
    without = _why_unsigned(signature, signer, has_keys=bool(trusted_keys))
    if code == SIGNED:
        return _refused(
            file.where,
            without,
            "a signature by one of the trusted keys, as code='signed' says",
            f"Sign it with armpy compile --sign, and give the key as trusted; {_GRAPH_ALONE}",
        )
    exposed = _why_exposed(file, path)
    if not exposed:
        return Verdict(True, f"it lies where nobody else can write ({without})")
    return _refused(
        file.where,
        f"{exposed}, and {without}",
        "a file that nobody else can change, or a signature by a trusted key",
        f"Copy it to a place of your own, or have it signed; {_GRAPH_ALONE}",
    )


def check_code_choice(code: str) -> None:
    """Check the option `code`.

    Raises
    ------
    InvalidArgumentError
        If there is no such choice.
    """
    if code not in CODE_CHOICES:
        raise InvalidArgumentError(
            "there is no such choice",
            where="code",
            expected=", ".join(f"'{choice}'" for choice in CODE_CHOICES),
            actual=repr(code),
        )


def _why_unsigned(signature: Signature, signer: str, *, has_keys: bool) -> str:
    """Why a file counts as not signed."""
    if signature == (NO_KEY, NO_SIGNATURE):
        return "it is not signed"
    if not has_keys:
        return f"it is signed by {signer}, but no keys are trusted"
    return f"it is signed by {signer}, which is not one of the trusted keys"


def _why_exposed(file: SignedFile, path: str | os.PathLike[str] | None) -> str:
    """Why others may have made a file what it is; empty if they cannot."""
    if path is None or file.info is None:
        return "it comes from memory, so that nobody knows who has written it"
    return why_exposed(os.fspath(path), file.info)


def _refused(where: str, reason: str, expected: str, fix: str) -> Verdict:
    """The verdict on a file that is not taken, with the error that says so."""
    failed = f"the code in the prepared file may not be used: {reason}"
    return Verdict(False, reason, ParserError(failed, where=where, expected=expected, fix=fix))
