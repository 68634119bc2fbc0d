"""Real distributions, written to disk for a test: a module and a ``*.dist-info`` beside it."""

from __future__ import annotations

import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from textwrap import dedent

from armpy.plugins.discovery.candidate import Candidate
from armpy.plugins.extension_tables import FOLDERS
from armpy.plugins.trust.pinned_code import SnapshotFinder

BACKEND_SOURCE = """
from armpy.backend import DeviceInfo, IBackendInternal
from armpy_reference import ReferenceBackend
from armpy.types import DeviceType


class Backend(ReferenceBackend):
    {extra}

    def get_id(self):
        return "{backend_id}"

    def get_devices(self):
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)
"""


def third_party(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Candidates without armpy's own commands and extensions, which may be installed or not."""
    return tuple(c for c in candidates if c.distribution not in {"armpy", *FOLDERS})


class FakeSite:
    """A folder on ``sys.path`` that distributions are written to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.modules: list[str] = []

    def install(
        self,
        name: str,
        entry_points: dict[str, str],
        *,
        source: str = "",
        version: str = "1.0",
        metadata: str | None = None,
        record: bool = False,
        parts: Mapping[str, str] | None = None,
        group: str = "armpy.backends",
    ) -> str:
        """Write one distribution; returns the name of its module.

        `name`: of the distribution; its module has ``_`` where this has ``-``.
        `entry_points`: object references by backend id, or plugin's name.
        `source`: of the module.
        `metadata`: the METADATA file's text, sound by default; none is written if it is empty.
        `record`: whether to write the list of files, as installers do.
        `parts`: source by name of submodules; the module is then a package.
        `group`: of the entry points.
        """
        module = name.replace("-", "_")
        sources = {f"{module}.py": source}
        if parts is not None:
            sources = {f"{module}/{part}.py": text for part, text in parts.items()}
            sources[f"{module}/__init__.py"] = source
        for file, text in sources.items():
            (self.path / file).parent.mkdir(exist_ok=True)
            (self.path / file).write_text(dedent(text))
        self.modules.append(module)
        info = self.path / f"{module}-{version}.dist-info"
        info.mkdir()
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if metadata:
            (info / "METADATA").write_text(metadata)
        lines = [f"{backend_id} = {reference}" for backend_id, reference in entry_points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
        if record:
            names = [*sources, f"__pycache__/{module}.pyc", "../bin/tool"]
            names += [f"{info.name}/{file}" for file in ("METADATA", "entry_points.txt", "RECORD")]
            (info / "RECORD").write_text("".join(f"{file},,\n" for file in names))
        return module

    def install_plugin(self, name: str, source: str, *, record: bool = False) -> str:
        """Write a distribution ``<name>-plugin`` whose module has hooks."""
        module = f"{name}_plugin"
        return self.install(
            f"{name}-plugin", {name: module}, source=source, record=record, group="armpy.plugins"
        )

    def install_library(
        self, name: str, library: Path, *, version: str = "1.0", sources: Mapping[str, str] = {}
    ) -> Path:
        """Write a distribution with a shared library in its package; returns the library's path.

        `library`: a file, which is moved there.
        `sources`: of the package's modules, by their names.
        """
        folder = self.path / name.replace("-", "_")
        folder.mkdir()
        library = library.rename(folder / library.name)
        files = [library]
        for module, text in sources.items():
            files.append(folder / f"{module}.py")
            files[-1].write_text(dedent(text))
        info = self.path / f"{folder.name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        rows = []
        for file in files:
            digest = urlsafe_b64encode(sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
            size = file.stat().st_size
            rows.append(f"{file.relative_to(self.path).as_posix()},sha256={digest},{size}\n")
        (info / "RECORD").write_text("".join([*rows, f"{info.name}/RECORD,,\n"]))
        return library

    def install_backend(
        self,
        backend_id: str,
        extra: str = "pass",
        *,
        name: str = "",
        version: str = "1.0",
        metadata: str | None = None,
        record: bool = False,
    ) -> str:
        """Write a distribution that brings one backend, a sound one unless `extra` spoils it."""
        name = name or f"{backend_id.lower()}-backend"
        source = BACKEND_SOURCE.format(backend_id=backend_id, extra=extra)
        reference = f"{name.replace('-', '_')}:Backend"
        return self.install(
            name,
            {backend_id: reference},
            source=source,
            version=version,
            metadata=metadata,
            record=record,
        )


@contextmanager
def fake_site(path: Path) -> Iterator[FakeSite]:
    """Put a new folder in front of ``sys.path``; afterwards its modules are forgotten."""
    site = FakeSite(path)
    sys.path.insert(0, str(path))
    try:
        yield site
    finally:
        sys.path.remove(str(path))
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, SnapshotFinder)]
        for name in [n for n in sys.modules if n.partition(".")[0] in site.modules]:
            del sys.modules[name]
