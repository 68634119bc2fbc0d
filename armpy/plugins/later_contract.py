"""Explains failures of backends that were written for a later version of the contract.

Such a backend imports names that this version has not, so that it fails before it can be asked for
its version.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from types import ModuleType, TracebackType

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins.checks import version_text, why_incompatible

_CONTRACT = re.compile(r"armpy(\.(backend|errors|graph|ops|plugins\.hooks|tensor|types)\b.*)?")
"""Modules that backends and plugins import; a later version of the contract adds names to these."""

_VERSION_FUNCTIONS = ("get_version", "get_api_version")


def why_too_new(error: BaseException) -> str:
    """Explain an exception about a name that the contract has not; empty for all others.

    The version that the code declares is read in the sources that the traceback goes through, as
    far as a function returns it as a literal.
    """
    if not _is_about_armpy(error):
        return ""
    versions = set(_declared_versions(error.__traceback__))
    for version in sorted(versions):
        if reason := why_incompatible(version):
            return reason
    if versions:  # it fits, so that the name is none of the contract
        return ""
    return (
        f"it may be made for a later API version than {BACKEND_API_VERSION}. Install a newer "
        "armpy, or an older version of it"
    )


def _is_about_armpy(error: BaseException) -> bool:
    """Whether a module or name of the contract was not found."""
    if isinstance(error, ImportError):
        return _is_of_contract(error.name)
    if not isinstance(error, AttributeError):
        return False
    owner: object = error.obj
    if isinstance(owner, ModuleType):
        return _is_of_contract(owner.__name__)
    return isinstance(owner, type) and _is_of_contract(owner.__module__)


def _is_of_contract(module: object) -> bool:
    return isinstance(module, str) and _CONTRACT.fullmatch(module) is not None


def _declared_versions(traceback: TracebackType | None) -> Iterator[str]:
    """Versions that the sources of a traceback declare, where they are literals."""
    while traceback is not None:
        frame = traceback.tb_frame
        traceback = traceback.tb_next
        if str(frame.f_globals.get("__name__")).partition(".")[0] == "armpy":
            continue
        source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):  # not Python's source
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in _VERSION_FUNCTIONS:
                yield from filter(None, map(_literal_version, node.body))


def _literal_version(statement: ast.stmt) -> str:
    """The version that a statement returns as a literal; empty if it does not."""
    if not isinstance(statement, ast.Return) or statement.value is None:
        return ""
    try:
        return version_text(ast.literal_eval(statement.value))
    except ValueError:
        return ""
