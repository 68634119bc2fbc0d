"""Trust in the code of a compiled model.

A user who can write to a file that is loaded can make the process do anything, so code is taken
from files that no other user can have written: by where they lie, as with backends, or by a
signature. The file is judged as it was opened, by its descriptor and by the header in memory. If it
is changed afterwards, `Container.checked` copies code before its checksum is
computed, and the signature is over the checksums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from armpy.core.file_ownership import why_exposed, why_writable
from armpy.errors import ParserError
from armpy.store import archive
from armpy.store.archive.container import Container, open_container

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.store.archive.container import Source
    from armpy.store.archive.signing import KeySource

TRUSTED = "trusted"
"""Code is taken from the user's own places, and from files that a trusted key has signed."""

SIGNED = "signed"
"""Code is taken only from files that a trusted key has signed."""

NEVER = "never"
"""No code is taken; networks are compiled from the graphs in the files."""

CODE_CHOICES = (TRUSTED, SIGNED, NEVER)


def _graph_alone() -> str:
    return f"set the option code to '{NEVER}' to take the graph alone"


class CodeVerdict(NamedTuple):
    """Verdict on the code in a compiled model: used or not, and why."""

    uses_code: bool
    reason: str  # why, or why not, for people; without a full stop
    # To raise where code that may not be used stands for a file that may not be loaded.
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
    container: Container,  # the file, as it was opened
    trusted_keys: Sequence[bytes] = (),  # Ed25519 public keys
    code: str = TRUSTED,
) -> CodeVerdict:
    """Judge whether the code in a file may be used.

    A signature by a trusted key has to be right, wherever the file lies: it says that the file is
    what its signer has made, and it is not. One by another key says nothing, as everybody can make
    keys. Without one, files in the user's own places are still taken: keys add places that files
    may come from, and take none away unless `code` is "signed".

    Raises
    ------
    UnimplementedError
        If there is a signature by a trusted key, and the ``cryptography`` package is not installed.
    """
    return _judged(container, _why_exposed(container), trusted_keys, code)


def open_judged(
    source: Source,
    trusted_keys: Sequence[bytes] = (),
    code: str = TRUSTED,
) -> tuple[Container, CodeVerdict]:
    """Open a file, and judge whether its code may be used; parameters and errors as of `judge`.

    What others can write to is read and not mapped, so that they can no longer change or truncate
    what a signature is over.

    Raises
    ------
    ParserError
        If the file cannot be read, is damaged or of another version; not if it is refused.
    """
    container = open_container(source)
    # Before it may be read anew from memory, which has no owner.
    exposed = _why_exposed(container)
    if exposed and container.path is not None and container.key in trusted_keys and code != NEVER:
        container = open_container(container.data.data, container.where)
    return container, _judged(container, exposed, trusted_keys, code)


def read_trusted_keys(sources: Iterable[KeySource] | None) -> tuple[bytes, ...]:
    """Public keys as of `armpy.store.archive.signing.trusted_keys`; none of None."""
    return archive.signing.trusted_keys(sources) if sources else ()


def _judged(
    container: Container, exposed: str, trusted_keys: Sequence[bytes], code: str
) -> CodeVerdict:
    """The verdict on a file, of which it is known why others can change it, if they can."""
    if code == NEVER:
        return CodeVerdict(False, f"code is not wanted: the option code is '{NEVER}'")
    # The signature first: a wrong one by a trusted key is refused wherever the file lies.
    if container.key in trusted_keys:
        signature = archive.signing.FileSignature(container.key, container.signature)
        signer = archive.signing.key_text(container.key)
        try:
            archive.signing.verify(container.signed, signature)
        except archive.signing.WrongSignatureError:
            return _refused(
                container.where,
                "its signature is wrong: the file was changed after signing",
                f"a signature by the trusted key {signer}",
                f"Get the file again from its signer, or {_graph_alone()}",
            )
        return CodeVerdict(True, f"it is signed by the trusted key {signer}")
    without = _why_unsigned(container, has_keys=bool(trusted_keys))
    if code == SIGNED:
        return _refused(
            container.where,
            without,
            f"a signature by one of the trusted keys, as the option code is '{SIGNED}'",
            f"Sign it with armpy compile --sign, and trust the key; or {_graph_alone()}",
        )
    if not exposed:
        return CodeVerdict(True, f"no other user can write where it lies ({without})")
    fix = "Copy it to a place of your own"
    if container.info and exposed == why_writable(container.info, f"file {container.path}"):
        fix = f"If you trust its contents, run chmod go-w {container.where}"
    return _refused(
        container.where,
        f"{exposed}, and {without}",
        "a file that no other user can change, or a signature by a trusted key",
        f"{fix}, have it signed, or {_graph_alone()}",
    )


def _why_unsigned(container: Container, *, has_keys: bool) -> str:
    """Why a file counts as not signed."""
    # Zeros stand in a file that is not signed.
    if not any(container.key) and not any(container.signature):
        return "it is not signed"
    signer = archive.signing.key_text(container.key)
    if not has_keys:
        return f"it is signed by {signer}, but no keys are trusted"
    return f"it is signed by {signer}, which is not one of the trusted keys"


def _why_exposed(container: Container) -> str:
    """Why other users may have written a file; empty if they cannot."""
    if container.path is None or container.info is None:
        return "it comes from memory, so its writer is unknown"
    return why_exposed(container.path, container.info)


def _refused(where: str, reason: str, expected: str, fix: str) -> CodeVerdict:
    """The verdict on a file that is not taken, with the error that says so."""
    failed = f"the code in the compiled model may not be used: {reason}"
    return CodeVerdict(False, reason, ParserError(failed, where=where, expected=expected, fix=fix))
