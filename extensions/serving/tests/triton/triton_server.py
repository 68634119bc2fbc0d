"""Triton Inference Server, as the wheel ``nvidia-pytriton`` brings it, on loopback."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_START_S = 400.0


def find_server() -> Path | None:
    """The folder of the wheel that holds the server; None if it is not installed."""
    spec = importlib.util.find_spec("pytriton")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "tritonserver"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return folder if (folder / "python_backend_stubs" / version).is_dir() else None


class TritonServer:
    """A server of a folder of models, ended with all that it started.

    `work`: a folder for the server's files and its log.
    `options`: of the server's command line.
    `variables`: of the environment.
    `waits`: whether to wait until all models are ready.
    """

    def __init__(
        self,
        repository: Path,
        work: Path,
        *options: str,
        variables: Mapping[str, str] | None = None,
        waits: bool = True,
    ) -> None:
        folder = find_server()
        assert folder is not None, "nvidia-pytriton is not installed"
        self.log = work / "server.log"
        # Instances that are killed leave their shared memory.
        self._regions = f"armpy_{os.getpid()}_{time.monotonic_ns()}_"
        self.http, self.grpc, self.metrics = (f"127.0.0.1:{port}" for port in _free_ports(3))
        addresses = []
        for kind, address in (("http", self.http), ("grpc", self.grpc), ("metrics", self.metrics)):
            host, _, port = address.partition(":")
            addresses += [f"--{kind}-address={host}", f"--{kind}-port={port}"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    str(folder / "bin" / "tritonserver"),
                    f"--model-repository={repository}",
                    f"--backend-directory={_backends(folder, work)}",
                    *addresses,
                    "--exit-timeout-secs=10",
                    f"--backend-config=python,shm-region-prefix-name={self._regions}",
                    "--disable-auto-complete-config",
                    # Many at once fail on a busy machine, and take the server with them.
                    "--model-load-thread-count=1",
                    *options,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **_environment(folder), **(variables or {})},
                start_new_session=True,
            )
        try:
            self.wait(ready=waits)
        except BaseException:
            self.close()
            raise

    def wait(self, *, ready: bool = True) -> None:
        """Wait until the server is ready, or at least lives."""
        path = "ready" if ready else "live"
        until = time.monotonic() + _START_S
        while self.status(f"/v2/health/{path}") != 200:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server does not start:\n{self.text()[-20000:]}")
            time.sleep(0.1)

    def status(self, path: str) -> int:
        """The status of a page; 0 without an answer."""
        try:
            with urllib.request.urlopen(f"http://{self.http}{path}", timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return int(error.code)
        except OSError:
            return 0

    def page(self, address: str, path: str) -> str:
        """A page's text."""
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def text(self) -> str:
        """The server's log."""
        return self.log.read_text(errors="replace")

    def instances(self, name: str = "") -> list[int]:
        """Processes that run models, or those of one model."""
        processes = []
        for process in _descendants(self.process.pid):
            try:
                line = Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if "triton_python_backend_stub" in line[0] and (
                not name or f"/{name}/" in line[1] or name in line
            ):
                processes.append(process)
        return processes

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        # All that it has started is of its session, also where it has died before them.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        for region in Path("/dev/shm").glob(f"{self._regions}*"):
            region.unlink(missing_ok=True)

    def __enter__(self) -> TritonServer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _free_ports(count: int) -> list[int]:
    """Free ports."""
    sockets = [socket.socket() for _ in range(count)]
    for socket_bound in sockets:
        socket_bound.bind(("127.0.0.1", 0))
    ports = [socket_bound.getsockname()[1] for socket_bound in sockets]
    for socket_bound in sockets:
        socket_bound.close()
    return ports


def _backends(folder: Path, work: Path) -> Path:
    """A folder with the Python backend for this interpreter."""
    backends = work / "backends"
    if not backends.exists():
        shutil.copytree(folder / "backends" / "python", backends / "python")
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        stub = folder / "python_backend_stubs" / version / "triton_python_backend_stub"
        shutil.copy2(stub, backends / "python")
    return backends


def _environment(folder: Path) -> dict[str, str]:
    """Variables by which instances find this interpreter's library and packages."""
    libraries = [folder.parents[1] / "nvidia_pytriton.libs", sysconfig.get_config_var("LIBDIR")]
    return {
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        # Instances are of the environment whose python3 is found first.
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
    }


def _descendants(process: int) -> list[int]:
    """Processes that one has started, and those that these have."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    children = list(parents.get(process, ()))
    for child in children:  # which grows
        children += parents.get(child, ())
    return children
