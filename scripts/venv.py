"""Makes a virtual environment with pip and installs into it.

    python3 scripts/venv.py DIR [pip install arguments...]

Works also where Python comes without `ensurepip`, as on Debian and Ubuntu without the
package python3-venv: then pip's own wheel is downloaded from the package index (that of
``PIP_INDEX_URL`` if it is set), checked against the index's SHA-256 and run once to install
itself. Needs nothing but Python's standard library.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

DEFAULT_INDEX = "https://pypi.org/simple"
OLDEST_PYTHON = (3, 11)

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
_WHEEL = re.compile(r"pip-(\d+(?:\.\d+)*)-py3-none-any\.whl")
_LARGEST_DOWNLOAD_BYTES = 64 << 20
_TIMEOUT_S = 60.0


class SetupError(Exception):
    """Something that stops the environment from being made; its text is for the user."""


class Wheel(NamedTuple):
    """One file that the index offers."""

    filename: str
    url: str
    sha256: str
    requires_python: str


def main(arguments: list[str]) -> int:
    """Make the environment; the result is the exit code."""
    if sys.version_info < OLDEST_PYTHON:
        print(
            "venv.py: error: Python 3.11 or newer is needed, this is "
            f"{sys.version_info[0]}.{sys.version_info[1]}",
            file=sys.stderr,
        )
        return 1
    if not arguments or arguments[0].startswith("-"):
        print("usage: python3 venv.py DIR [pip install arguments...]", file=sys.stderr)
        return 2
    try:
        return make(Path(arguments[0]), arguments[1:])
    except (SetupError, OSError, subprocess.CalledProcessError) as error:
        print(f"venv.py: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def make(folder: Path, requirements: list[str]) -> int:
    """Create the environment and install into it; the result is pip's exit code."""
    if folder.exists() and not (folder / "pyvenv.cfg").exists():
        if not folder.is_dir():
            raise SetupError(f"{folder} is a file")
        if any(folder.iterdir()):
            raise SetupError(f"{folder} has files in it and is no virtual environment")
    pip_source = create(folder)
    python = python_of(folder)
    installs = "; pip install follows" if requirements else ""
    number = ".".join(map(str, sys.version_info[:3]))
    print(f"venv.py: {folder} with Python {number} and pip {pip_source}{installs}", flush=True)
    if not requirements:
        return 0
    return subprocess.run([python, "-m", "pip", "install", *requirements], check=False).returncode


def create(folder: Path) -> str:
    """Create the environment with pip; says where pip is from."""
    # A module of its own process: this file has the name of the one that is needed.
    command = [sys.executable, "-I", "-m", "venv", str(folder)]
    if (
        has_ensurepip()
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    ):
        return "of this Python"
    # Some distributions have the module ensurepip, but not the wheel that it unpacks.
    subprocess.run([*command, "--without-pip"], check=True)
    index = os.environ.get("PIP_INDEX_URL") or DEFAULT_INDEX
    with tempfile.TemporaryDirectory() as scratch:
        wheel = download_pip(index, Path(scratch))
        install = [python_of(folder), str(wheel / "pip"), "install", "--quiet", "--no-index"]
        subprocess.run([*install, str(wheel)], check=True)
        return f"{wheel.name.split('-')[1]} from the package index"


def has_ensurepip() -> bool:
    """Whether this Python can install pip by itself."""
    try:
        importlib.import_module("ensurepip")
    except ImportError:
        return False
    return True


def python_of(folder: Path) -> str:
    """Path of an environment's interpreter."""
    parts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return str(folder.absolute().joinpath(*parts))


def download_pip(index: str, folder: Path) -> Path:
    """Download pip's newest wheel that runs here, and check it.

    Raises
    ------
    SetupError
        If the index has none, or the file is not what the index says.
    """
    opener, index = open_index(index)
    page, kind, address = fetch(opener, index.rstrip("/") + "/pip/")
    wheel = newest(read_page(page, kind, address))
    if not re.fullmatch("[0-9a-f]{64}", wheel.sha256):
        raise SetupError(f"the index gives no SHA-256 for {wheel.filename}")
    content, _, _ = fetch(opener, wheel.url)
    if hashlib.sha256(content).hexdigest() != wheel.sha256:
        raise SetupError(f"{wheel.filename} does not have the SHA-256 that the index gives")
    path = folder / wheel.filename
    path.write_bytes(content)
    return path


def open_index(index: str) -> tuple[urllib.request.OpenerDirector, str]:
    """What opens addresses of an index, and the index's address without a password."""
    parts = urlsplit(index)
    if parts.scheme not in ("http", "https"):
        raise SetupError("the package index is not at an http or https address")
    # certifi does not come with Python; pip's own variable points at other authorities.
    context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
    handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
    if parts.username is not None:
        address = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        passwords = urllib.request.HTTPPasswordMgrWithPriorAuth()
        user, password = unquote(parts.username), unquote(parts.password or "")
        passwords.add_password(None, address, user, password, is_authenticated=True)
        handlers.append(urllib.request.HTTPBasicAuthHandler(passwords))
        index = address
    return urllib.request.build_opener(*handlers), index


def fetch(opener: urllib.request.OpenerDirector, address: str) -> tuple[bytes, str, str]:
    """Content, content type and final address of a page or file."""
    if urlsplit(address).scheme not in ("http", "https"):
        raise SetupError(f"the index refers to an address of another kind: {address}")
    request = urllib.request.Request(address, headers={"Accept": _ACCEPT})
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as response:
            content: bytes = response.read(_LARGEST_DOWNLOAD_BYTES + 1)
            kind, final = response.headers.get_content_type(), response.geturl()
    except (OSError, ValueError) as error:  # OSError: every error of urllib and of TLS
        raise SetupError(f"{address} cannot be read: {error}") from error
    if len(content) > _LARGEST_DOWNLOAD_BYTES:
        raise SetupError(f"{address} is too large")
    return content, kind, final


def read_page(content: bytes, kind: str, address: str) -> list[Wheel]:
    """The files of an index page, in the JSON or the HTML form of the simple index."""
    try:
        text = content.decode("utf-8")
        if not kind.endswith("json"):
            parser = _Links(address)
            parser.feed(text)
            return parser.wheels
        return [
            Wheel(
                file["filename"],
                urljoin(address, file["url"]),
                file.get("hashes", {}).get("sha256", ""),
                file.get("requires-python") or "",
            )
            for file in json.loads(text)["files"]
            if not file.get("yanked")
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SetupError(f"{address} is not a page of a package index") from error


class _Links(HTMLParser):
    """Collects the files of a page in HTML."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.wheels: list[Wheel] = []
        self._address = address

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take up a link."""
        found = dict(attrs)
        href = found.get("href")
        if tag != "a" or href is None or "data-yanked" in found:
            return
        url, fragment = urldefrag(urljoin(self._address, href))
        algorithm, _, digest = fragment.partition("=")
        sha256 = digest if algorithm == "sha256" else ""
        name = unquote(urlsplit(url).path.rpartition("/")[2])
        self.wheels.append(Wheel(name, url, sha256, found.get("data-requires-python") or ""))


def newest(wheels: list[Wheel]) -> Wheel:
    """The wheel of pip's highest final version that runs on this Python."""
    versions = [
        (tuple(map(int, match[1].split("."))), wheel)
        for wheel in wheels
        if (match := _WHEEL.fullmatch(wheel.filename)) and runs_here(wheel.requires_python)
    ]
    if not versions:
        raise SetupError("the package index has no wheel of pip for this Python")
    return max(versions)[1]


def runs_here(requires_python: str) -> bool:
    """Whether this Python is new enough; pip asks for nothing but a lowest version."""
    lowest = re.findall(r">=\s*(\d+(?:\.\d+)*)", requires_python)
    return all(tuple(map(int, v.split("."))) <= sys.version_info[:3] for v in lowest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
