"""A KServe server with models of armpy, in a process of its own, on the loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

HOST = "127.0.0.1"
HEADER = "Inference-Header-Content-Length"
START_S = 400.0  # time limit of a start, on a busy machine


@dataclass(frozen=True)
class KServeProcess:
    """A server that runs."""

    process: subprocess.Popen[bytes]
    http_port: int
    grpc_port: int
    log: Path
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.http_port}"

    @property
    def http_address(self) -> str:
        return f"{HOST}:{self.http_port}"

    @property
    def grpc_address(self) -> str:
        return f"{HOST}:{self.grpc_port}"

    def send(
        self, verb: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own: status, headers, body."""
        connection = (
            HTTPConnection(HOST, self.http_port, timeout=60)
            if self.tls is None
            else HTTPSConnection(HOST, self.http_port, timeout=60, context=self.tls)
        )
        try:
            connection.request(verb, path, body, headers or {})
            answer = connection.getresponse()
            headers_sent = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, headers_sent, answer.read()
        finally:
            connection.close()

    def infer(self, model: str, **document: object) -> tuple[int, dict[str, object]]:
        """An inference by JSON: status and document."""
        path, headers = f"/v2/models/{model}/infer", {"Content-Type": "application/json"}
        status, _, body = self.send("POST", path, json.dumps(document).encode(), headers)
        return status, json.loads(body)

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the values of a metric with these labels."""
        page = self.send("GET", "/metrics")[2].decode()
        lines = [line for line in page.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(float(ln.rsplit(" ", 1)[1]) for ln in lines if all(w in ln for w in wanted))

    def stop(self, timeout_s: float = 60) -> int:
        """Ask it to end, and wait; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)


@contextmanager
def kserve_server(
    model_dir: Path,
    log: Path,
    *flags: str,
    environment: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[KServeProcess]:
    """A server of a folder's models, once it is ready."""
    http_port, grpc_port = free_ports(2)
    command = [
        *(sys.executable, "-W", "ignore", "-m", "armpy_serving.kserve"),
        *("--model_dir", str(model_dir)),
        *("--http_port", str(http_port), "--grpc_port", str(grpc_port), *flags),
    ]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=os.environ | (environment or {})
        )
    server = KServeProcess(process, http_port, grpc_port, log, tls)
    try:
        _wait_until_ready(server)
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_ports(number: int) -> Sequence[int]:
    """Free ports of the loopback."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(number)]
    ports = [bound.getsockname()[1] for bound in sockets]
    for bound in sockets:
        bound.close()
    return ports


def _wait_until_ready(server: KServeProcess) -> None:
    """Wait until the server answers that it is ready."""
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s and server.process.poll() is None:
        try:
            if server.send("GET", "/v2/health/ready")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server is not ready:\n{server.log.read_text()[-4000:]}")
