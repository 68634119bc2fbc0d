"""Keys and signatures of compiled models."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
from pathlib import Path

import pytest

from armpy.errors import InvalidArgumentError
from armpy.store.archive.signing import (
    FileSignature,
    WrongSignatureError,
    generate_keys,
    key_text,
    read_public_key,
    sign,
    trusted_keys,
    verify,
)
from armpy_testing.systems import NEEDS_OWNERS

pytest.importorskip("cryptography", reason="cryptography is not installed (armpy[sign])")

MESSAGE = bytes(range(64))
RFC_SECRET = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
"""Secret key of RFC 8032, section 7.1, test 1."""
RFC_PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
"""Its public key."""


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    generate_keys(path)
    return path


def pem(kind: str, der: bytes) -> str:
    """What RFC 7468 makes of a structure."""
    return f"-----BEGIN {kind}-----\n{base64.b64encode(der).decode()}\n-----END {kind}-----\n"


def rfc_key(folder: Path) -> Path:
    """The private key of RFC 8032's first test, in the structure of RFC 8410, section 7."""
    path = folder / "rfc.pem"
    prefix = bytes.fromhex("302e020100300506032b657004220420")
    path.write_text(pem("PRIVATE KEY", prefix + RFC_SECRET))
    return path


def test_the_public_key_is_that_of_rfc_8032(tmp_path: Path) -> None:
    assert sign(MESSAGE, rfc_key(tmp_path)).public_key == RFC_PUBLIC


def test_what_is_signed_begins_with_its_purpose(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(RFC_SECRET)
    expected = key.sign(b"armpy compiled model 2\0" + MESSAGE)
    assert sign(MESSAGE, rfc_key(tmp_path)).signature == expected  # Ed25519 has no randomness
    with pytest.raises(WrongSignatureError, match="has not made this signature"):
        verify(MESSAGE, FileSignature(RFC_PUBLIC, key.sign(MESSAGE)))


def test_a_signature_is_right_for_its_message_alone(key_file: Path) -> None:
    signature = sign(MESSAGE, key_file)
    verify(MESSAGE, signature)
    for position in range(len(MESSAGE)):
        changed = bytearray(MESSAGE)
        changed[position] ^= 1
        with pytest.raises(WrongSignatureError):
            verify(bytes(changed), signature)


@pytest.mark.parametrize("field", ["public_key", "signature"])
def test_a_signature_with_a_changed_bit_is_wrong(key_file: Path, field: str) -> None:
    signature = sign(MESSAGE, key_file)
    for bit in range(0, len(getattr(signature, field)) * 8, 7):
        changed = bytearray(getattr(signature, field))
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WrongSignatureError):
            verify(MESSAGE, signature._replace(**{field: bytes(changed)}))


@pytest.mark.parametrize(("num_key", "num_signature"), [(31, 64), (33, 64), (32, 63), (32, 0)])
def test_a_signature_of_another_length_is_wrong(
    key_file: Path, num_key: int, num_signature: int
) -> None:
    signature = sign(MESSAGE, key_file)
    key = signature.public_key.ljust(num_key, b"\0")[:num_key]
    with pytest.raises(WrongSignatureError):
        verify(MESSAGE, FileSignature(key, signature.signature[:num_signature]))


@NEEDS_OWNERS
def test_a_private_key_is_for_its_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        public_path, public = generate_keys(tmp_path / "key.pem")
    finally:
        os.umask(before)
    assert public_path == str(tmp_path / "key.pem.pub")
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(public_path).stat().st_mode) == 0o644
    assert (tmp_path / "key.pem").read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert read_public_key(public_path) == public == sign(MESSAGE, tmp_path / "key.pem").public_key


@pytest.mark.parametrize("name", ["key.pem", "key.pem.pub"])
def test_keys_that_are_there_are_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InvalidArgumentError, match=rf"{name}: the key cannot be written: File exi"):
        generate_keys(tmp_path / "key.pem")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    _, public = generate_keys(path, b"correct horse")
    assert sign(MESSAGE, path, b"correct horse").public_key == public
    with pytest.raises(InvalidArgumentError, match=r"key is encrypted\. Give its password"):
        sign(MESSAGE, path)
    with pytest.raises(InvalidArgumentError, match="or has another password"):
        sign(MESSAGE, path, b"battery staple")
    with pytest.raises(InvalidArgumentError, match="the password is empty"):
        generate_keys(tmp_path / "other.pem", b"")


def test_a_password_for_a_key_that_has_none_is_refused(key_file: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"is not encrypted\. Leave the password out"):
        sign(MESSAGE, key_file, b"correct horse")


def test_keys_that_are_none_cannot_sign(key_file: Path, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    with pytest.raises(InvalidArgumentError, match="the key cannot be read: No such file"):
        sign(MESSAGE, tmp_path / "absent.pem")
    with pytest.raises(InvalidArgumentError, match="private key, PEM; got a public key"):
        sign(MESSAGE, f"{key_file}.pub")
    other = tmp_path / "other.pem"
    other.write_text("no key")
    with pytest.raises(InvalidArgumentError, match=r"other\.pem: this is not a private key"):
        sign(MESSAGE, other)
    curve = generate_private_key(SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    other.write_bytes(curve)
    with pytest.raises(InvalidArgumentError, match="Expected an Ed25519 key; got"):
        sign(MESSAGE, other)


def test_openssl_makes_keys_that_are_taken(tmp_path: Path) -> None:
    private, public = tmp_path / "key.pem", tmp_path / "key.pub"
    commands = [
        ["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(private)],
        ["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)],
    ]
    for command in commands:
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            pytest.skip(f"openssl cannot make Ed25519 keys here: {error}")
    assert read_public_key(public) == sign(MESSAGE, private).public_key


def test_a_public_key_may_be_a_file_or_bytes_or_text(key_file: Path, tmp_path: Path) -> None:
    text = f"ed25519:{base64.b64encode(RFC_PUBLIC).decode()}"
    path = tmp_path / "public.pem"
    path.write_text(pem("PUBLIC KEY", bytes.fromhex("302a300506032b6570032100") + RFC_PUBLIC))
    forms = (RFC_PUBLIC, text, str(path), path)
    assert [read_public_key(form) for form in forms] == [RFC_PUBLIC] * 4
    assert key_text(RFC_PUBLIC) == text
    assert trusted_keys(forms) == (RFC_PUBLIC,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"short", r"32 bytes that are not all zero; got 5 bytes"),
        (bytes(32), r"not all zero; got zeros"),
        ("ed25519:" + "A" * 43 + "=", r"not all zero; got zeros"),
        ("ed25519:!!!", r"44 characters of 32 bytes in Base64; got 'ed25519:!!!'"),
        ("ed25519:AAAA", r"32 bytes that are not all zero; got 3 bytes"),
        ("ed25519:é", r"44 characters of 32 bytes in Base64"),
        ("absent.pem", r"absent\.pem: the key cannot be read: No such file"),
        ("a\0b", r"the key cannot be read: .*embedded null"),
        ("\ud800", r"the key cannot be read: (.*surrogates not allowed|No such file)"),
        ("/dev/zero", r"Expected a regular file of at most 65536 bytes; got no regular file"),
        (7, r"PEM file's path, 32 bytes, or the text ed25519:BASE64; got 7"),
    ],
)
def test_what_is_no_public_key_is_refused(given: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        read_public_key(given)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
def test_a_fifo_is_no_public_key(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    os.mkfifo(path)
    with pytest.raises(InvalidArgumentError, match="got no regular file"):
        read_public_key(path)


def test_a_long_file_is_no_public_key(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(bytes((1 << 16) + 1))
    with pytest.raises(InvalidArgumentError, match="got more than 65536 bytes"):
        read_public_key(path)


def test_a_private_key_is_no_trusted_key(key_file: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="a public key, PEM; got a private key"):
        read_public_key(key_file)


def test_a_public_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    path = tmp_path / "curve.pem"
    path.write_bytes(
        generate_private_key(SECP256R1())
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(InvalidArgumentError, match="Expected an Ed25519 key; got"):
        read_public_key(path)
    path.write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    with pytest.raises(InvalidArgumentError, match=r"curve\.pem: this is not a public key"):
        read_public_key(path)


@NEEDS_OWNERS
def test_a_public_key_that_others_can_change_is_refused(key_file: Path) -> None:
    public = Path(f"{key_file}.pub")
    public.chmod(0o666)
    with pytest.raises(InvalidArgumentError, match=r"others can change it: .* by everybody"):
        read_public_key(public)
