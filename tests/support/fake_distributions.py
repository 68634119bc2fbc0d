"""Real distributions, written to disk for a test: a module and a ``*.dist-info`` beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

BACKEND_SOURCE = """
from armpy.backend import IBackendInternal
from armpy_reference import ReferenceBackend
from armpy.types import DeviceType


class Backend(ReferenceBackend):
    {extra}

    @property
    def backend_id(self):
        return "{backend_id}"

    @property
    def device_type(self):
        return DeviceType.ACCELERATOR
"""


class FakeSite:
    """A folder on ``sys.path`` that distributions are written to.

    Parameters
    ----------
    path : Path
    """

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
    ) -> str:
        """Write one distribution; returns the name of its module.

        Parameters
        ----------
        name : str
            Of the distribution; its module has ``_`` where this has ``-``.
        entry_points : dict of str to str
            Object references by backend id.
        source : str
            Of the module.
        metadata : str, optional
            The METADATA file's text, sound by default; none is written if it is empty.
        record : bool
            Whether to write the list of files, as installers do.
        """
        module = name.replace("-", "_")
        (self.path / f"{module}.py").write_text(dedent(source))
        self.modules.append(module)
        info = self.path / f"{module}-{version}.dist-info"
        info.mkdir()
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if metadata:
            (info / "METADATA").write_text(metadata)
        lines = [f"{backend_id} = {reference}" for backend_id, reference in entry_points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[armpy.backends]", *lines, ""]))
        if record:
            names = [f"{module}.py", f"__pycache__/{module}.pyc", "../bin/tool"]
            names += [f"{info.name}/{file}" for file in ("METADATA", "entry_points.txt", "RECORD")]
            (info / "RECORD").write_text("".join(f"{file},,\n" for file in names))
        return module

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
        for module in site.modules:
            sys.modules.pop(module, None)
