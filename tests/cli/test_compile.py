"""`armpy compile`, and compiled models in the place of models."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from armpy_numba_acc.files import NumbaPrograms

import armpy
from armpy_testing.command_line import Cli
from armpy_testing.models.networks import RELU, f32
from armpy_testing.models.onnx_texts import HEAD
from armpy_testing.systems import NEEDS_REPLACEABLE_FILES


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


for library in ("click", "PIL"):
    pytest.importorskip(library)

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
MODEL = str(DIGITS / "digits_int8.tflite")
NAME = "serving_default_image:0"


@pytest.fixture
def output(tmp_path: Path) -> str:
    return str(tmp_path / "model.armpy")


def test_a_compiled_model_gives_what_the_original_gives(cli: Cli, output: str) -> None:
    said = cli.out("compile", MODEL, "-o", output)
    assert f"written: {output}" in said
    assert "10  NumbaAcc  host" in said
    assert "not in it" not in said
    image = np.random.default_rng(0).integers(-128, 128, (1, 16, 16, 1)).astype(np.int8)
    with armpy.load(MODEL) as original, armpy.load(output) as compiled:
        assert compiled.is_light
        np.testing.assert_array_equal(compiled(image), original(image))


@pytest.mark.slow
def test_targets_are_compiled_in_their_order(cli: Cli, output: str) -> None:
    report = cli.document(
        *("compile", MODEL, "-o", output),
        *("--target", "cortex-a72", "--target", "host", "--target", "cortex-a72"),
    )
    assert report["targets_by_backend"] == {"NumbaAcc": ["cortex-a72", "host"]}
    with armpy.load(output) as compiled:
        assert compiled.is_light


def test_what_a_backend_does_not_keep_is_said(
    cli: Cli, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NumbaPrograms, "save", lambda *_: None)
    said = cli.out("compile", MODEL, "-o", output)
    assert "10  NumbaAcc  nothing" in said
    assert "for host: the program cannot be kept" in said


def test_a_model_of_any_size_is_prepared_for_the_shapes(
    cli: Cli, tmp_path: Path, output: str
) -> None:
    network = armpy.Network("open")
    network.output("y", network.add(RELU, network.input("x", f32(None, 3))))
    original = armpy.Model(network)
    original.prepare({"x": (1, 3)})
    source = str(tmp_path / "open.armpy")
    original.save(source)
    shapes = ("--shapes", "x=2,3", "--shapes", "x=5,3")
    said = cli.out("compile", source, "-o", output, *shapes)
    assert "for these sizes of what the model leaves open: x (2, 3)\n" in said
    assert "for these sizes of what the model leaves open: x (5, 3)\n" in said
    assert "other sizes are prepared when they come; --shape prepares them now\n" in said
    with armpy.load(output) as compiled:
        compiled(np.zeros((2, 3), np.float32))
        assert compiled.is_light
        compiled(np.zeros((5, 3), np.float32))
        assert not compiled.is_light


def test_a_signed_file_says_by_whom(cli: Cli, tmp_path: Path, output: str) -> None:
    pytest.importorskip("cryptography")
    key = write_signing_key(tmp_path / "key.pem")
    said = cli.out("compile", MODEL, "-o", output, "--sign", key.path)
    assert f"written: {output}, signed by {key.text}" in said
    with armpy.load(output, trusted_keys=[key.public], code="signed") as compiled:
        assert compiled.is_light


@NEEDS_REPLACEABLE_FILES
def test_inspect_shows_whether_a_signature_is_right_and_the_code_is_used(
    cli: Cli, tmp_path: Path, output: str
) -> None:
    pytest.importorskip("cryptography")
    key = write_signing_key(tmp_path / "key.pem")
    cli.out("compile", MODEL, "-o", output, "--sign", key.path)
    options = ("--trusted-key", f"{key.path}.pub", "--code", "signed")
    contents = cli.document("inspect", output, *options)["prepared"]
    assert (contents["signature"], contents["signer"]) == ("right", key.text)
    assert contents["uses_code"]
    assert "signed by the trusted key" in contents["trust"]
    data = bytearray(Path(output).read_bytes())
    data[100] ^= 1  # of the signature
    Path(output).write_bytes(data)
    contents = cli.document("inspect", output, *options)["prepared"]
    assert contents["signature"] == "wrong"
    assert not contents["uses_code"]
    assert "used" not in [use["status"] for use in contents["uses"]]


def test_a_wrong_key_is_found_before_compiling(
    cli: Cli, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setattr("armpy.load", None)
    assert "not a private key" in cli.err("compile", MODEL, "-o", output, "--sign", MODEL)


@pytest.fixture
def compiled(cli: Cli, output: str) -> str:
    cli.out("compile", MODEL, "-o", output)
    return output


@pytest.mark.parametrize(
    "arguments",
    [["--repeat", "1"], ["--code", "never"]],
)
def test_run_takes_a_compiled_file_with_options_of_ordinary_networks(
    cli: Cli, compiled: str, arguments: list[str]
) -> None:
    actual, expected = (cli.document("run", path, *arguments) for path in (compiled, MODEL))
    assert actual["outputs"] == expected["outputs"]
    assert actual["layers_by_backend"] == expected["layers_by_backend"]


OPEN = """graph (float[batch, 1, length] x, float[batch, 1, 1] state) => (float[b, 1, l] y)
    <float[1, 1, 3] w = {1.0, 2.0, 3.0}> {
    p = Conv (x, w) y = Add (p, state)
}"""
CPU_REF = ("--backends", "CpuRef")
SHAPE = ("--shape", "x=2,1,8")
"""The shape of `state` follows: both inputs have the dimension `batch`."""


@pytest.fixture
def open_model(tmp_path: Path) -> Path:
    """A model that takes several sizes, and is saved for one set of them only."""
    pytest.importorskip("armpy_onnx")
    onnx = pytest.importorskip("onnx.parser")
    path = tmp_path / "open.onnx"
    path.write_bytes(onnx.parse_model(HEAD + OPEN).SerializeToString())
    return path


def test_a_file_that_only_takes_the_shapes_says_so(cli: Cli, open_model: Path, output: str) -> None:
    command = ("compile", open_model, *CPU_REF, "-o", output)
    assert "one set of shapes only" in cli.err(*command, *SHAPE, "--shape", "x=1,1,8")
    out = " ".join(cli.out(*command, *SHAPE).split())
    leaves_open = "of what the model leaves open: x (2, 1, 8), state (2, 1, 1)"
    assert f"prepared only for these sizes {leaves_open}" in out
    assert "other sizes" not in out
    with armpy.load(output, backends=["CpuRef"]) as compiled:
        x = np.arange(16, dtype=np.float32).reshape(2, 1, 8)
        y = compiled(x, np.full((2, 1, 1), 0.5, np.float32))
    # 1 x[i] + 2 x[i + 1] + 3 x[i + 2] of consecutive numbers
    np.testing.assert_array_equal(y, 6 * x[:, :, :6] + 8.5)
    cli.out("run", output, *CPU_REF, *SHAPE)
    error = cli.err("run", output, *CPU_REF, "--shape", "x=2,1,4")
    assert "Expected (2, 1, 8); got (2, 1, 4)" in error
