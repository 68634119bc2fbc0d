"""Commands that install armpy's extensions, for fixes of errors."""

from __future__ import annotations

from armpy.core.installation import install_command
from armpy.plugins.extension_tables import FOLDERS, NEEDED


def install_line(distribution: str) -> str:
    """Return the command that installs an extension, and the extensions that it depends on."""
    return install_command({name: FOLDERS[name] for name in NEEDED[distribution]})
