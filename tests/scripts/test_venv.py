"""Making a virtual environment without `ensurepip`, from a package index on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "venv.py"

Page = tuple[str, bytes]
Serve = Callable[[dict[str, Page]], str]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("venv_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a web server with some pages; gives its address."""
    servers: list[ThreadingHTTPServer] = []

    def start(pages: dict[str, Page]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, content = pages.get(self.path, ("", b""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def json_page(*files: dict[str, object]) -> Page:
    content = json.dumps({"meta": {"api-version": "1.0"}, "files": files}).encode()
    return "application/vnd.pypi.simple.v1+json", content


def wheel_file(
    version: str, content: bytes = b"", requires: str = "", yanked: object = False
) -> dict[str, object]:
    name = f"pip-{version}-py3-none-any.whl"
    digest = hashlib.sha256(content).hexdigest()
    return {
        "filename": name,
        "url": f"../files/{name}",
        "hashes": {"sha256": digest},
        "requires-python": requires or None,
        "yanked": yanked,
    }


def versions(wheels: Sequence[object]) -> list[str]:
    return [wheel.filename.split("-")[1] for wheel in wheels]  # type: ignore[attr-defined]


def test_the_newest_final_wheel_that_runs_here_is_chosen() -> None:
    _, content = json_page(
        wheel_file("9.0"),
        wheel_file("25.3"),
        wheel_file("25.10", requires=">=3.9"),
        wheel_file("26.0", requires=">=4.0"),
        wheel_file("27.0", yanked="broken"),
        wheel_file("28.0b1"),
        {"filename": "pip-29.0.tar.gz", "url": "x", "hashes": {}},
    )
    wheels = script.read_page(content, "application/json", "http://index/simple/pip/")
    chosen = script.newest(wheels)
    assert versions([chosen]) == ["25.10"]
    assert chosen.url == "http://index/simple/files/pip-25.10-py3-none-any.whl"


def test_a_page_in_html_says_the_same() -> None:
    page = b"""<!DOCTYPE html><html><body>
    <a href="../../files/pip-25.3-py3-none-any.whl#sha256=ab" data-requires-python="&gt;=3.9">x</a>
    <a href="../../files/pip-26.0-py3-none-any.whl#sha256=cd" data-yanked="">x</a>
    <a href="../../files/pip-24.0-py3-none-any.whl#md5=ef">x</a><a name="top">x</a>
    </body></html>"""
    wheels = script.read_page(page, "text/html", "http://index/simple/pip/")
    assert versions(wheels) == ["25.3", "24.0"]
    assert wheels[0] == script.Wheel(
        "pip-25.3-py3-none-any.whl",
        "http://index/files/pip-25.3-py3-none-any.whl",
        "ab",
        ">=3.9",
    )
    assert wheels[1].sha256 == ""


def test_an_index_without_pip_is_an_error() -> None:
    with pytest.raises(script.SetupError, match="no wheel of pip"):
        script.newest([])


@pytest.mark.parametrize("content", [b"{}", b"[]", b"\xff", b'{"files": [{}]}'])
def test_a_page_that_is_none_is_an_error(content: bytes) -> None:
    with pytest.raises(script.SetupError, match="not a page of a package index"):
        script.read_page(content, "application/json", "http://index")


def test_a_wheel_with_another_hash_is_refused(serve: Serve, tmp_path: Path) -> None:
    entry = wheel_file("25.3", b"what the index has seen")
    name = str(entry["filename"])
    index = serve(
        {"/simple/pip/": json_page(entry), f"/simple/files/{name}": ("x/y", b"another thing")}
    )
    with pytest.raises(script.SetupError, match=r"pip-25\.3.* does not have the SHA-256"):
        script.download_pip(f"{index}/simple", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_wheel_without_a_hash_is_refused(serve: Serve, tmp_path: Path) -> None:
    index = serve({"/pip/": json_page({**wheel_file("25.3"), "hashes": {}})})
    with pytest.raises(script.SetupError, match="gives no SHA-256"):
        script.download_pip(index, tmp_path)


def test_an_index_that_does_not_answer_is_named(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(script.SetupError, match=r"/nothing/pip/ cannot be read: .*404"):
        script.download_pip(serve({}) + "/nothing/", tmp_path)


def test_only_web_addresses_are_opened(tmp_path: Path) -> None:
    with pytest.raises(script.SetupError, match="not at an http or https address"):
        script.download_pip(tmp_path.as_uri(), tmp_path)
    opener, _ = script.open_index("http://127.0.0.1")
    with pytest.raises(script.SetupError, match="an address of another kind"):
        script.fetch(opener, tmp_path.as_uri())


def test_a_password_is_not_part_of_the_address() -> None:
    _, index = script.open_index("https://user:p%40ss@index.example:8443/simple")
    assert index == "https://index.example:8443/simple"


def test_an_older_python_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(script.sys, "version_info", (3, 10, 0))
    assert script.main([str(tmp_path / "env")]) == 1
    assert "Python 3.11 or newer is needed, this is 3.10" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_a_folder_is_needed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage:")


def test_a_folder_of_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert script.main([str(tmp_path)]) == 1
    assert "has files in it and is no virtual environment" in capsys.readouterr().err
    assert script.main([str(tmp_path / "thesis.txt")]) == 1
    assert "is a file" in capsys.readouterr().err


def test_without_ensurepip_the_wheel_of_the_index_installs_itself(
    serve: Serve, tmp_path: Path
) -> None:
    ensurepip = pytest.importorskip("ensurepip")
    bundled = list((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if not bundled:
        pytest.skip("this Python has no wheel of pip to serve")
    content = bundled[0].read_bytes()
    version = bundled[0].name.split("-")[1]
    index = serve(
        {
            "/simple/pip/": json_page(wheel_file(version, content)),
            f"/simple/files/{bundled[0].name}": ("application/octet-stream", content),
        }
    )
    stub = tmp_path / "stub"
    stub.mkdir()
    (stub / "ensurepip.py").write_text("raise ImportError('left out')\n")
    folder = tmp_path / "env"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    no_proxy = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)],
        env={**kept, **no_proxy, "PYTHONPATH": str(stub), "PIP_INDEX_URL": f"{index}/simple"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    number = ".".join(map(str, sys.version_info[:3]))
    assert done.stdout == (
        f"venv.py: {folder} with Python {number} and pip {version} from the package index\n"
    )
    shown = subprocess.run(
        [script.python_of(folder), "-m", "pip", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.startswith(f"pip {version} from {folder}")
