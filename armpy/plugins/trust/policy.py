"""Trust policy: which candidates may be loaded."""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from armpy.core.file_ownership import (
    HAS_OWNERS,
    kind_of,
    links_to,
    trusted_owners,
    why_foreign,
    why_writable,
)
from armpy.errors import InvalidArgumentError
from armpy.plugins.discovery.candidate import Candidate, CandidateKind, RejectionError
from armpy.plugins.discovery.directories import module_places
from armpy.plugins.discovery.entry_points import is_own
from armpy.plugins.options import PluginOptions
from armpy.plugins.trust.pinned_code import NOT_PINNED, PinnedCode, read_pinned
from armpy.types import BackendId

ENVIRONMENT_VARIABLE = "ARMPY_TRUST_FILE"
"""Path of the trust file if the options name none."""

_KEYS = ("allow", "plugins", "require_pins", "files", "distributions")
_DIGEST = re.compile(r"[0-9a-f]{64}")


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

        Raises
        ------
        RejectionError
            If it may not be loaded.
        """
        # The application's own code decides for itself; it was not found anywhere.
        if candidate.kind is CandidateKind.CODE:
            return NOT_PINNED
        try:
            if candidate.kind is CandidateKind.DIRECTORY:
                self._check_path(candidate)
            elif candidate.is_plugin:
                self._check_plugin(candidate.backend_id)
            else:
                self.check_id(candidate.backend_id)
            return self._check_pin(candidate)
        except OSError as error:
            raise RejectionError(f"it cannot be read: {error}") from error

    def check_id(self, backend_id: BackendId) -> None:
        """Check an id as soon as it is known; raises RejectionError if it is not allowed."""
        if self.allow is not None and backend_id not in self.allow:
            raise RejectionError(f"the trust file does not allow the id '{backend_id}'")

    def _check_plugin(self, name: str) -> None:
        """Check a plugin's name: a list of backends alone allows none, as no plugin is on it."""
        is_listed = self.allow is None if self.plugins is None else name in self.plugins
        if not is_listed:
            raise RejectionError(f"the trust file does not allow the plugin '{name}'")

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
            raise RejectionError("the trust file has no pin for it, and requires one")
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
    """What the options and the trust file say.

    Raises
    ------
    InvalidArgumentError
        If the trust file cannot be read, is not well formed, or others can change it.
    """
    path = os.fspath(options.trust_file or os.environ.get(ENVIRONMENT_VARIABLE, ""))
    if not path:
        return Trust(insecure_paths=options.trust_insecure_paths)
    import tomllib  # noqa: PLC0415 - most processes have no trust file

    try:
        with open(path, "rb") as file:
            fields = tomllib.load(file)
    except OSError as error:
        raise _malformed(path, f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _malformed(path, f"is not TOML: {error}") from error
    is_checked = not options.trust_insecure_paths
    if is_checked and (reason := why_insecure(os.path.realpath(path), entry=path)):
        raise _malformed(path, f"can be changed by others: {reason}")
    return _trust(path, fields, options.trust_insecure_paths)


def _trust(path: str, fields: Mapping[str, object], insecure_paths: bool) -> Trust:
    for key in fields:
        # An error, as a misspelt key would protect nothing in silence.
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1)
            raise _malformed(path, f"has an unknown key '{key}'", ", ".join(near or _KEYS))
    allow = _names(path, fields, "allow", "backend ids")
    plugins = _names(path, fields, "plugins", "plugins' names")
    require_pins = fields.get("require_pins", False)
    if not isinstance(require_pins, bool):
        raise _malformed(path, f"has require_pins = {require_pins!r}", "true or false")
    files = _pins(path, fields, "files")
    for name in files:
        # A relative one would pin another file in every working directory.
        if not os.path.isabs(name):
            raise _malformed(path, f"pins '{name}'", "an absolute path")
    distributions = _pins(path, fields, "distributions")
    return Trust(
        allow,
        plugins,
        require_pins,
        # Candidates are known by canonical paths; a pin may name a link to one.
        {os.path.realpath(name): digest for name, digest in files.items()},
        {_normalized(name): digest for name, digest in distributions.items()},
        insecure_paths,
    )


def _names(path: str, fields: Mapping[str, object], key: str, what: str) -> frozenset[str] | None:
    """A list of names; None if there is none."""
    if key not in fields:
        return None
    names = fields[key]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _malformed(path, f"has {key} = {names!r}", f"a list of {what}")
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


def _malformed(path: str, failed: str, expected: str = "") -> InvalidArgumentError:
    return InvalidArgumentError(f"the trust file {failed}", where=path, expected=expected)


def why_insecure(
    path: str, directory: str = "", entry: str = "", owners: frozenset[int] | None = None
) -> str:
    """Why other users can change a module, or where a path leads to; empty if they cannot.

    Parameters
    ----------
    path : str
        Canonical path of a file or a package.
    directory : str
        Where it was found, if that is another directory.
    entry : str
        By which it was found, if that is a link to it, or to another link.
    owners : frozenset of int, optional
        User ids that are trusted: the current user and root by default.

    Notes
    -----
    Looks at the directory in which it was found, the one in which it is, and the file or all
    that the package has, with the directories that links in it lead to; not further up. A
    sticky bit does not help: others could still add a module. Then at each link on the way, those
    in a package too, and at the directory it is in. In one with a sticky bit only a link's owner
    can put another in its place.
    """
    if not HAS_OWNERS:  # pragma: no cover - of Windows
        return ""
    trusted = trusted_owners() if owners is None else owners
    places = module_places(path)
    if reason := _first_reason([*filter(None, [directory]), *places], trusted):
        return reason
    # The owner of a link chooses the module, whoever owns what it leads to now.
    for link in sorted({link for place in (entry or path, *places) for link in links_to(place)}):
        reason = why_foreign(os.lstat(link), f"link {link}", trusted) or _first_reason(
            [os.path.dirname(link)], trusted, spared=stat.S_ISVTX
        )
        if reason:
            return f"on the way to it, {reason}"
    return ""


def _first_reason(places: Iterable[str], trusted: frozenset[int], spared: int = 0) -> str:
    """Why other users can change one of some files or directories; some modes may be spared."""
    for place in places:
        info = os.stat(place)
        what = f"{kind_of(info)} {place}"
        if reason := why_foreign(info, what, trusted):
            return reason
        if reason := why_writable(info, what, spared):
            return f"{reason}. Run chmod go-w on it, or set trust_insecure_paths"
    return ""
