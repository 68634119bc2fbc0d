"""Commands that install armpy's extensions and backends, for fixes of errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from armpy.core.installation import install_command
from armpy.errors import did_you_mean, nearest_name
from armpy.plugins.extension_tables import BACKEND_FOLDERS, BACKENDS, FOLDERS, NEEDED


def install_line(distribution: str) -> str:
    """Return the command that installs a distribution, and the extensions that it depends on.

    Extras may stand after its name: ``armpy-serving[kserve]``.
    """
    folders = {**FOLDERS, **BACKEND_FOLDERS}
    own = distribution.partition("[")[0]
    return install_command(
        {distribution if name == own else name: folders[name] for name in NEEDED.get(own, (own,))}
    )


def missing_extension(
    error: ModuleNotFoundError, distribution: str, purpose: str
) -> ModuleNotFoundError:
    """Return an error that says how to install the distribution of a module that is not found.

    Parameters
    ----------
    error : ModuleNotFoundError
        Python's own error.
    distribution : str
        Distribution of this project that brings the module, or that depends on what does.
    purpose : str
        What it is needed for, as the subject of a sentence.
    """
    return ModuleNotFoundError(
        f"{purpose} needs {distribution} ({error}). Run: {install_line(distribution)}",
        name=error.name,
        path=error.path,
    )


def suggest_name(
    name: str, installed: Collection[str], distributions: Mapping[str, str], otherwise: str
) -> str:
    """Suggest a name for an unknown one, and how to install what brings it if that is missing.

    Parameters
    ----------
    name : str
        The unknown name.
    installed : collection of str
        Names that can be used here.
    distributions : mapping of str to str
        Distributions of this project by the names that they bring.
    otherwise : str
        Remedy if no name is near.

    Returns
    -------
    str
        Text for the `fix` of an error.
    """
    near = nearest_name(name, [*installed, *distributions])
    distribution = distributions.get(str(near), "")
    if near is None or near in installed or not distribution:
        return did_you_mean(name, installed, otherwise)
    source = f"comes with {distribution}, which is missing. Run: {install_line(distribution)}"
    return f"It {source}" if near == name else f"Did you mean '{near}'? It {source}"


def suggest_backend(backend_id: str, installed: Collection[str]) -> str:
    """Return the fix of an error about an unknown backend."""
    otherwise = f"Choose an expected one, or install the package that brings '{backend_id}'"
    return suggest_name(backend_id, installed, BACKENDS, otherwise)
