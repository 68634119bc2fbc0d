"""Front-ends that plugins have registered: which one takes a file, and calls to it."""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from armpy import plugins  # its install lines: for errors alone
from armpy.backend.options import OptionScope, check_options
from armpy.errors import Argument, ArmpyError, InvalidArgumentError, ParserError, did_you_mean
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.plugins.discovery.candidate import (
    Candidate,
    CandidateStatus,
    Failure,
    RejectionError,
)
from armpy.plugins.extension_tables import CUSTOM_OPERATORS, SUFFIXES
from armpy.plugins.front_ends.validate import check_front_end, checked_graph, checked_signatures
from armpy.plugins.hook_plugins import Answer, HookPlugins
from armpy.plugins.hooks import (
    CustomOperator,
    FrontEnd,
    FrontEndOptionError,
    ModelFile,
    ModelSignature,
    OperatorParts,
    ParseSettings,
)
from armpy.plugins.hooks.file_kinds import (
    HEAD_BYTES,
    NO_MODEL_FIX,
    TEXT,
    begins_as_onnx,
    kind_without_model,
)
from armpy.plugins.proxy.guarded_call import describe, let_user_interrupt, named_error

if TYPE_CHECKING:
    from armpy.graph import Value
    from armpy.plugins.hooks.custom_operator import CustomConverter
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.plugins.hooks.outline import FileOutline

T = TypeVar("T")

_HOOK = "armpy_register_front_end"
_ONNX = ".onnx"


class FrontEnds:
    """Every front-end that can be used.

    armpy's own come first, so that no plugin can take their names, suffixes or magic numbers.
    Plugins are asked only for files that have none of these magic numbers.
    """

    def __init__(self, plugins: HookPlugins) -> None:
        self._plugins = plugins
        self._own = self._registered(own_alone=True)

    @cached_property
    def _found(self) -> list[FrontEndProxy]:
        return self._registered(own_alone=False)

    def _registered(self, *, own_alone: bool) -> list[FrontEndProxy]:
        front_ends: list[FrontEndProxy] = []
        for answer in self._plugins.ask(_HOOK, FrontEnd, own_alone=own_alone):
            self._add(front_ends, answer.candidate, answer.value)
        return front_ends

    def _add(
        self, front_ends: list[FrontEndProxy], candidate: Candidate, front_end: FrontEnd
    ) -> None:
        """Add what a plugin has registered, if it can be used and nothing of it is taken."""

        def check() -> None:
            check_front_end(front_end)
            if reason := _why_taken(front_end, front_ends):
                raise RejectionError(reason)
            front_ends.append(FrontEndProxy(front_end, candidate, self._plugins))

        self._plugins.contained(candidate, _HOOK, check, default=None)

    def __iter__(self) -> Iterator[FrontEndProxy]:
        return iter(self._found)

    def choose(
        self,
        file: ModelFile,
        # The wanted front-end; otherwise one of armpy's own magic numbers selects it, then the
        # longest of others, then a front-end's `recognizes`, then the longest suffix.
        name: str | None = None,
    ) -> FrontEndProxy:
        """The front-end that takes a file.

        Raises InvalidArgumentError if there is none of that name; ParserError if none takes it.
        """
        if name is not None:
            return self._named(name)
        return (
            _by_magic(self._own, file)
            or _by_magic(self._found, file)
            or next((f for f in self._found if self._recognizes(f, file)), None)
            or self._by_suffix(file)
            or self._fallback(file)
        )

    def _named(self, name: str) -> FrontEndProxy:
        # Plugins are loaded to be looked at, armpy's own come first.
        for front_end in itertools.chain(self._own, self):
            if front_end.name == name:
                return front_end
        command = self._missing_formats().get(f".{name}")
        raise InvalidArgumentError(
            f"there is no front-end '{name}'",
            argument=Argument("front_end"),
            expected="one of " + ", ".join(front_end.name for front_end in self._found),
            fix=f"Run: {command}"
            if command
            else did_you_mean(
                name, (f.name for f in self._found), self._left_out() or "Use an expected one"
            ),
        )

    def _recognizes(self, front_end: FrontEndProxy, file: ModelFile) -> bool:
        recognizes = front_end.recognizes
        if recognizes is None:
            return False
        view = file.data[:]  # of its own: a front-end that releases it takes it from no other
        return self._plugins.contained(
            front_end.candidate, _HOOK, lambda: recognizes(view) is True, default=False
        )

    def _by_suffix(self, file: ModelFile) -> FrontEndProxy | None:
        """The front-end of a plugin with the file's suffix; armpy's own take files by contents."""
        if file.path is None:
            return None
        name = file.path.name.lower()
        fitting = [
            (len(suffix), front_end)
            for front_end in self._found
            for suffix in front_end.suffixes
            if name.endswith(suffix) and not front_end.is_own
        ]
        return max(fitting, key=lambda pair: pair[0])[1] if fitting else None

    def _fallback(self, file: ModelFile) -> FrontEndProxy:
        """The first of armpy's own front-ends, which names the likely formats of other files."""
        head = bytes(file.data[:HEAD_BYTES])
        suffix = "" if file.path is None else file.path.suffix.lower()
        missing = self._missing_formats()
        if begins_as_onnx(head) and suffix != _ONNX and _ONNX in missing:
            raise ParserError(
                "an ONNX file by its contents, and no installed front-end reads these",
                where=file.label,
                fix=f"Run: {missing[_ONNX]}",
            )
        if suffix in missing:
            if kind := kind_without_model(head):
                raise ParserError(
                    "the file holds no model",
                    where=file.label,
                    actual=kind,
                    fix=NO_MODEL_FIX,
                )
            raise ParserError(
                f"no installed front-end reads {suffix} files",
                where=file.label,
                fix=f"Run: {missing[suffix]}",
            )
        if not self._found or not self._found[0].is_own:
            raise ParserError("there is no front-end", fix=self._left_out())
        own = self._found[0]
        may_be_theirs = kind_without_model(head) in ("", TEXT)
        hints = self._other_front_ends() if may_be_theirs else []
        if file.path is None:
            hints += [f"To read {end} files, run: {command}" for end, command in missing.items()]
        hints += filter(None, [self._left_out()])
        return FrontEndProxy(own.front_end, own.candidate, self._plugins, ". ".join(hints))

    def _other_front_ends(self) -> list[str]:
        """The front-ends of plugins in a sentence if any."""
        others = [f for f in self._found if not f.is_own]
        if not others:
            return []
        names = ", ".join(f"{f.name} ({', '.join(f.suffixes)})" for f in others)
        return [f"Other front-ends are {names}: choose one with the option front_end"]

    def _missing_formats(self) -> dict[str, str]:
        installed = {candidate.distribution for candidate in self._plugins.candidates}
        read = {suffix for front_end in self._found for suffix in front_end.suffixes}
        return {
            suffix: plugins.install_line(distribution)
            for suffix, distribution in SUFFIXES.items()
            if distribution not in installed and suffix not in read
        }

    def _left_out(self) -> str:
        lost = [
            f"plugin '{c.label}' from {c.source}: {c.reason}"
            for c in self._plugins.candidates
            if c.status not in (CandidateStatus.REGISTERED, CandidateStatus.FOUND)
        ]
        lost += [
            f"{hook} of plugin '{c.label}' from {c.source}: {failure.reason}"
            for c, hook, failure in self._plugins.problems
            if hook == _HOOK
        ]
        return "Left out is " + "; ".join(lost) if lost else ""


class FrontEndProxy:
    """A front-end, called through the plugin boundary."""

    def __init__(
        self,
        front_end: FrontEnd,
        candidate: Candidate,  # the plugin that has registered it
        plugins: HookPlugins,
        hint: str = "",  # added to what it says of files that it does not understand
    ) -> None:
        self.front_end = front_end
        self.candidate = candidate
        # Whether it is armpy's, whose parsers keep the limits and raise ParserError alone.
        self.is_own = plugins.is_own(candidate)
        self._around_calls = plugins.around_calls
        self.name, self.title = front_end.name, front_end.title
        self.suffixes, self.magic = front_end.suffixes, front_end.magic
        self.recognizes = front_end.recognizes
        self._hint = hint

    @property
    def where(self) -> str:
        """The name of it in messages."""
        return f"front-end '{self.name}' of {self.candidate.source}"

    @property
    def notes_other_files(self) -> bool:
        """Return whether every other file that a model is made of is known."""
        return self.is_own or self.front_end.notes_other_files

    @property
    def missing_modules(self) -> list[str]:
        """The modules that the parser needs and that are not installed."""
        return [name for name in self.front_end.requires if not _is_installed(name)]

    def check_options(self, given: Mapping[str, object]) -> dict[str, object]:
        """Options checked and completed with defaults; dictionaries become JSON.

        Raises InvalidArgumentError if one is not declared, or its value not allowed.
        """
        declared = self.front_end.options
        values = dict(given)
        for name, value in given.items():
            if isinstance(value, dict):
                with suppress(TypeError, ValueError):  # not JSON: refused like every wrong value
                    values[name] = json.dumps(value, allow_nan=False)
        scopes = check_options(declared, values, f"front-end '{self.name}'", whose="front-end")
        return {name: value for scope in OptionScope for name, value in scopes[scope].items()}

    def parse(self, file: ModelFile, settings: ParseSettings) -> Network | Graph:
        """The network of a file.

        Raises ParserError if the parser raises, or returns anything but a sound network within the
        limit.
        """

        def parse() -> Network | Graph:
            network = self.front_end.parse(file, settings)
            return network if self.is_own else checked_graph(network, settings.memory_limit_bytes)

        has_checked = self.is_own and self.front_end.signatures is not None  # its parser does
        if settings.signature is not None and not has_checked:
            names = [signature.name for signature in self.signatures(file)]
            if settings.signature not in names:
                raise ParserError(
                    f"the model has no signature '{settings.signature}'",
                    where=file.label,
                    expected=", ".join(f"'{n}'" for n in names) or "none, as it has no signatures",
                    fix=did_you_mean(settings.signature, names, "Leave the signature out"),
                )
        return self._contained(file, parse)

    def signatures(self, file: ModelFile) -> tuple[ModelSignature, ...]:
        """The signatures of a file; errors as for `parse`."""
        read = self.front_end.signatures
        if read is None:
            return ()
        return self._contained(file, lambda: checked_signatures(read(file)))

    def describe(self, file: ModelFile) -> dict[str, str]:
        """Return the front-end's description of a file; errors as for `parse`."""
        describe = self.front_end.describe
        if describe is None:
            return {}

        def facts() -> dict[str, str]:
            return {str(name): str(fact) for name, fact in describe(file).items()}

        return self._contained(file, facts)

    def metadata(self, file: ModelFile, signature: str | None) -> ModelMetadata:
        """Read the metadata of a file; errors as for `parse`."""
        # Few applications ask for metadata.
        from armpy.plugins.front_ends.validate_records import plain_metadata  # noqa: PLC0415

        read = self.front_end.metadata
        if read is None:
            return plain_metadata(None)
        return self._contained(file, lambda: plain_metadata(read(file, signature)))

    def outline(self, file: ModelFile, signature: str | None) -> FileOutline | None:
        """Return a file's outline; None if the front-end has none. Errors as for `parse`."""
        # Few applications ask for an outline.
        from armpy.plugins.front_ends.validate_records import plain_outline  # noqa: PLC0415

        read = self.front_end.outline
        if read is None:
            return None
        return self._contained(file, lambda: plain_outline(read(file, signature)))

    def rename_other_files(self, file: ModelFile, names: Mapping[Path, str]) -> bytes:
        """Bytes of a model file whose other files have new paths; errors as for `parse`."""
        rename = self.front_end.rename_other_files
        if rename is None:
            raise ParserError(
                "the front-end cannot rename the other files of a model",
                where=f"{file.label} / {self.where}",
            )
        return self._contained(file, lambda: bytes(rename(file, names)))

    def _contained(self, file: ModelFile, call: Callable[[], T]) -> T:
        """Call the front-end; whatever it raises is a ParserError that names it and the file."""
        install = f"Run: {self.front_end.install}" if self.front_end.install else ""
        if missing := self.missing_modules:
            raise ParserError(
                f"the front-end needs {', '.join(missing)}, which is not installed",
                where=f"{file.label} / {self.where}",
                fix=install,
            )
        try:
            with self._around_calls():
                return call()
        except ArmpyError as error:
            self._raise(file, error)
        except BaseException as error:
            let_user_interrupt(error)
            raise ParserError(
                f"the front-end raised {describe(error)}",
                where=f"{file.label} / {self.where}",
                fix=install if isinstance(error, ModuleNotFoundError) else "",
            ) from error

    def _raise(self, file: ModelFile, error: ArmpyError) -> NoReturn:
        if self.is_own:
            if self._hint and isinstance(error, ParserError):
                error.fix = ". ".join(filter(None, [error.fix.rstrip("."), self._hint]))
            raise error
        # A copy, as the plugin may raise one object again and again.
        named = named_error(f"{file.label} / {self.where}", error)
        if isinstance(named, ParserError | FrontEndOptionError):
            raise named from error.__cause__
        raise ParserError(
            named.failed,
            where=named.where,
            argument=named.argument,
            expected=named.expected,
            actual=named.actual,
            fix=named.fix,
        ) from error


def _by_magic(front_ends: Iterable[FrontEndProxy], file: ModelFile) -> FrontEndProxy | None:
    """The front-end with the longest magic number that fits; the first of several."""
    fitting = [
        (len(magic.pattern), front_end)
        for front_end in front_ends
        for magic in front_end.magic
        if magic.fits(file.data)
    ]
    # By the length alone: front-ends have no order.
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _why_taken(front_end: FrontEnd, others: Iterable[FrontEndProxy]) -> str:
    """Why a front-end cannot stand beside others; empty if it can."""
    for other in others:
        if front_end.name == other.name:
            return f"the front-end name '{other.name}' is taken: {other.candidate.source}"
        for suffix in front_end.suffixes:
            if suffix in other.suffixes:
                return f"the suffix '{suffix}' is taken: {other.where}"
        for magic in front_end.magic:
            if magic in other.magic:
                return f"the magic number {magic.pattern!r} is taken: {other.where}"
    return ""


def _is_installed(module: str) -> bool:
    """Return whether a module can be found; none is imported but the packages that it is in."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
    except BaseException as error:  # noqa: BLE001 - plugin boundary: the packages that it is in
        let_user_interrupt(error)
        return True  # and broken, which the parser's own import reports


def custom_operators(plugins: HookPlugins) -> Mapping[str, CustomConverter]:
    """Converters of custom operators by name.

    Of two plugins the first counts; those of armpy's extensions count if no other plugin has them.
    """
    hook = "armpy_register_custom_operators"
    own: dict[str, CustomConverter] = {}
    registered: dict[str, CustomConverter] = {}
    for answer in plugins.ask(hook, CustomOperator):
        name = answer.value.name
        if answer.candidate.distribution == CUSTOM_OPERATORS.get(name):
            own[name] = _guarded(answer)
        elif name in registered:
            reason = f"the custom operator '{name}' is another plugin's already"
            plugins.complain(answer.candidate, hook, Failure(reason))
        else:
            registered[name] = _guarded(answer)
    return own | registered


def _guarded(answer: Answer[CustomOperator]) -> CustomConverter:
    """A converter whose mistakes are named after its plugin."""

    def convert(parts: OperatorParts) -> Value | Sequence[Value]:
        try:
            return answer.value.convert(parts)
        # Errors that armpy itself raises in there keep their text.
        except ArmpyError:
            raise
        except Exception as error:
            raise ParserError(
                f"the plugin '{answer.candidate.label}' cannot convert '{answer.value.name}'",
                actual=f"{type(error).__name__}: {error}",
            ) from error

    return convert
