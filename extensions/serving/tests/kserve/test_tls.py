"""A certificate protects both ways to a server."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

import numpy as np
import pytest

from .inference_calls import CallError, grpc_modules, message, send
from .kserve_server import HOST, kserve_server

pytest.importorskip("kserve", reason="kserve is not installed")
pytest.importorskip("cryptography", reason="cryptography is not installed")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def write_certificate(certificate: Path, key: Path) -> None:
    """Write a certificate of the loopback that is signed by itself, and its key."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address(HOST))
    signed = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    certificate.write_bytes(signed.public_bytes(pem))
    form, free = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(private.private_bytes(pem, form, free))


def test_http_and_grpc_are_encrypted_with_the_same_files(
    small_models: Path, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    write_certificate(certificate, key)
    tls = ssl.create_default_context(cafile=certificate)
    flags = ("--model_name", "m", "--ssl_certfile", str(certificate), "--ssl_keyfile", str(key))
    request = message("m", {"h": np.array([2], np.float16)}, raw=True)
    model = small_models / "halves.armpy"
    modules = grpc_modules()
    with kserve_server(model, tmp_path / "log", *flags, tls=tls) as running:
        assert running.send("GET", "/v2/models/m")[0] == 200
        trusted = modules.grpc.ssl_channel_credentials(certificate.read_bytes())
        with modules.grpc.secure_channel(running.grpc_address, trusted) as channel:
            answer = modules.stub(channel).ModelInfer(request, timeout=60)
        assert answer.raw_output_contents[0] == np.float16(4).tobytes()
        with pytest.raises(CallError, match="UNAVAILABLE"):  # as it is not encrypted
            send(running.grpc_address, request)
