"""Trust policy: which candidates may be loaded."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import field

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.plugins.discovery.candidate import Candidate, CandidateKind, RejectionError
from armpy.plugins.discovery.discover import is_own
from armpy.plugins.discovery.module_files import why_insecure
from armpy.plugins.options import PluginOptions
from armpy.plugins.trust.pinned_code import NOT_PINNED, PinnedCode, read_pinned
from armpy.types import BackendId

ENVIRONMENT_VARIABLE = "ARMPY_TRUST_FILE"
"""Path of the trust file if the options name none."""

_KEYS = ("allow", "plugins", "require_pins", "files", "distributions")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ALLOW = "Add it to the list in the trust file, if you trust it"


@dataclass(frozen=True, slots=True)
class Trust:
    """Trust policy: what may be loaded."""

    # Ids of backends; None for all.
    allow: frozenset[BackendId] | None = None
    # Names of plugins with hooks; None for all, unless `allow` has a list.
    plugins: frozenset[str] | None = None
    # Whether all that has no pin is refused.
    require_pins: bool = False
    # SHA-256 of files and packages by canonical path, of distributions by normalised name.
    files: Mapping[str, str] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    # Whether files may be loaded that other users can change.
    insecure_paths: bool = False

    def check(self, candidate: Candidate) -> PinnedCode:
        """Check all that is known before anything of a candidate runs, and read its pinned code.

        Raises RejectionError if it may not be loaded.
        """
        # The application's own code decides for itself; it was not found anywhere.
        if candidate.kind is CandidateKind.CODE:
            return NOT_PINNED
        try:
            if candidate.kind is CandidateKind.DIRECTORY:
                self._check_path(candidate)
            elif candidate.is_plugin:
                name = candidate.backend_id
                # A list of backends alone allows no plugin, as none is on it.
                listed = self.allow is None if self.plugins is None else name in self.plugins
                if not listed and not is_own(candidate):
                    reason = f"the trust file does not allow the plugin '{name}'"
                    raise RejectionError(reason, _ALLOW)
            elif not candidate.is_unidentified_library:
                self.check_id(candidate.backend_id)
            return self._check_pin(candidate)
        except OSError as error:
            raise RejectionError(f"it cannot be read: {error}") from error

    def check_id(self, backend_id: BackendId) -> None:
        """Check an id as soon as it is known; raises RejectionError if it is not allowed."""
        if self.allow is not None and backend_id not in self.allow:
            reason = f"the trust file does not allow the id '{backend_id}'"
            raise RejectionError(reason, _ALLOW)

    def _check_path(self, candidate: Candidate) -> None:
        if self.insecure_paths:
            return
        if reason := why_insecure(candidate.path, candidate.directory, candidate.entry):
            raise RejectionError(reason)
        common = candidate.common
        if common and (reason := why_insecure(os.path.realpath(common), entry=common)):
            raise RejectionError(f"of the common code beside it, {reason}")

    def _check_pin(self, candidate: Candidate) -> PinnedCode:
        if candidate.kind is CandidateKind.DIRECTORY:
            candidate.pin = self.files.get(candidate.path, "")
        else:  # names are only compared where there are any: that takes a library
            pins = self.distributions
            candidate.pin = pins.get(_normalized(candidate.distribution), "") if pins else ""
        if self.require_pins and not candidate.pin and not is_own(candidate):
            reason = "the trust file has no pin for it, and requires one"
            raise RejectionError(reason, "Add its pin to the trust file, if you trust it")
        if candidate.common:
            candidate.common_pin = self.files.get(os.path.realpath(candidate.common), "")
            # The module imports it, so that code without a pin would run in a pinned backend.
            if candidate.pin and not candidate.common_pin:
                raise RejectionError(
                    f"the trust file has a pin for it, but none for {candidate.common}, "
                    "the common code beside it"
                )
        return read_pinned(candidate)


def read_trust(options: PluginOptions) -> Trust:
    """Combine the options and the trust file.

    Raises InvalidArgumentError if the trust file cannot be read, is not well formed, or others can
    change it.
    """
    path = os.fspath(options.trust_file or os.environ.get(ENVIRONMENT_VARIABLE, ""))
    if not path:
        return Trust(insecure_paths=options.trust_insecure_paths)
    import tomllib  # noqa: PLC0415 - most processes have no trust file

    try:
        with open(path, "rb") as file:
            fields = tomllib.load(file)
    except OSError as error:
        fix = "" if options.trust_file else f"Correct {ENVIRONMENT_VARIABLE}, or unset it"
        raise _malformed(path, f"cannot be read: {error.strerror}", fix=fix) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _malformed(path, f"is not TOML: {error}") from error
    insecure_paths = options.trust_insecure_paths
    if not insecure_paths and (reason := why_insecure(os.path.realpath(path), entry=path)):
        raise _malformed(path, f"can be changed by others: {reason}")
    for key in fields:
        # An error, as a misspelt key would protect nothing in silence.
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1)
            raise _malformed(path, f"has an unknown key '{key}'", ", ".join(near or _KEYS))
    require_pins = fields.get("require_pins", False)
    if not isinstance(require_pins, bool):
        raise _malformed(path, f"has require_pins = {require_pins!r}", "true or false")
    files = _pins(path, fields, "files")
    for name in files:
        # A relative one would pin another file in every working directory.
        if not os.path.isabs(name):
            raise _malformed(path, f"pins '{name}'", "an absolute path")
    return Trust(
        _names(path, fields, "allow", "backend ids"),
        _names(path, fields, "plugins", "plugins' names"),
        require_pins,
        # Candidates are known by canonical paths; a pin may name a link to one.
        {os.path.realpath(name): digest for name, digest in files.items()},
        {_normalized(k): digest for k, digest in _pins(path, fields, "distributions").items()},
        insecure_paths,
    )


def _names(path: str, fields: Mapping[str, object], key: str, noun: str) -> frozenset[str] | None:
    """A list of names; None if there is none."""
    if key not in fields:
        return None
    names = fields[key]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _malformed(path, f"has {key} = {names!r}", f"a list of {noun}")
    return frozenset(names)


def _normalized(distribution: str) -> str:
    # Slow to import, and needed only where distributions are pinned.
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    return canonicalize_name(distribution)


def _pins(path: str, fields: Mapping[str, object], key: str) -> dict[str, str]:
    table = fields.get(key, {})
    if not isinstance(table, dict):
        raise _malformed(path, f"has {key} = {table!r}", "a table of SHA-256 digests")
    pins = {}
    for name, digest in table.items():
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest.lower()):
            raise _malformed(path, f"pins '{name}' to {digest!r}", "64 hexadecimal digits")
        pins[name] = digest.lower()
    return pins


def _malformed(path: str, failed: str, expected: str = "", fix: str = "") -> InvalidArgumentError:
    text = f"the trust file {failed}"
    return InvalidArgumentError(text, where=path, expected=expected, fix=fix)
