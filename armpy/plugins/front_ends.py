"""Front-ends that plugins have registered: which one takes a file, and calls to it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NoReturn, TypeVar

from armpy.backend.options import OptionScope, check_options
from armpy.errors import ArmpyError, InvalidArgumentError, ParserError
from armpy.graph import Graph, nested_graphs
from armpy.graph.verify import verify_graph
from armpy.hooks import FrontEnd, ModelFile, ModelSignature, ParseSettings
from armpy.network import Network
from armpy.ops.attributes import check_attributes
from armpy.ops.operation import Operation
from armpy.plugins.boundary import describe, exact, let_user_interrupt, named_error
from armpy.plugins.candidate import Candidate, CandidateStatus
from armpy.plugins.hooks import HookPlugins
from armpy.plugins.loading import Failure

T = TypeVar("T")

_HOOK = "armpy_register_front_end"


class FrontEnds:
    """Every front-end that can be used.

    Parameters
    ----------
    plugins : HookPlugins

    Notes
    -----
    armpy's own come first, so that no plugin can take their names, suffixes or magic numbers.
    """

    def __init__(self, plugins: HookPlugins) -> None:
        self._plugins = plugins
        self._found: list[GuardedFrontEnd] = []
        for answer in plugins.ask(_HOOK, FrontEnd, exactly=True):
            taken = _why_taken(answer.value, self._found)
            if taken:
                plugins.complain(answer.candidate, _HOOK, Failure(taken, ""))
            else:
                self._found.append(GuardedFrontEnd(answer.value, answer.candidate, plugins))

    def __iter__(self) -> Iterator[GuardedFrontEnd]:
        return iter(self._found)

    def choose(self, file: ModelFile, name: str | None = None) -> GuardedFrontEnd:
        """The front-end that takes a file.

        Parameters
        ----------
        file : ModelFile
        name : str, optional
            The one that is asked for; otherwise one of armpy's own magic numbers tells it, then the
            longest of others, then whoever recognises the contents, then the longest suffix.

        Raises
        ------
        InvalidArgumentError
            If there is none of that name.
        ParserError
            If none takes it.
        """
        if name is not None:
            return self._named(name)
        found = self._by_magic(file) or self._by_contents(file) or self._by_suffix(file)
        return found or self._fallback()

    def _named(self, name: str) -> GuardedFrontEnd:
        """The front-end of a name."""
        for front_end in self._found:
            if front_end.name == name:
                return front_end
        raise InvalidArgumentError(
            f"there is no front-end '{name}'",
            where="front_end",
            expected="one of " + ", ".join(front_end.name for front_end in self._found),
            fix=self._left_out(),
        )

    def _by_magic(self, file: ModelFile) -> GuardedFrontEnd | None:
        """The front-end with the longest magic number that fits; armpy's own go first."""
        fitting = [
            ((front_end.is_own, len(magic.pattern)), front_end)
            for front_end in self._found
            for magic in front_end.magic
            if magic.fits(file.data)
        ]
        return max(fitting, key=lambda pair: pair[0])[1] if fitting else None

    def _by_contents(self, file: ModelFile) -> GuardedFrontEnd | None:
        """The first front-end that recognises what is in a file."""
        return next((f for f in self._found if self._recognizes(f, file)), None)

    def _recognizes(self, front_end: GuardedFrontEnd, file: ModelFile) -> bool:
        """Whether a front-end recognises what is in a file."""
        recognizes = front_end.recognizes
        if recognizes is None:
            return False
        return self._plugins.contained(
            front_end.candidate, _HOOK, lambda: recognizes(file.data) is True, default=False
        )

    def _by_suffix(self, file: ModelFile) -> GuardedFrontEnd | None:
        """The front-end with the longest suffix that a file's name ends in."""
        if file.path is None:
            return None
        name = file.path.name.lower()
        fitting = [
            (len(suffix), front_end)
            for front_end in self._found
            for suffix in front_end.suffixes
            if name.endswith(suffix)
        ]
        return max(fitting, key=lambda pair: pair[0])[1] if fitting else None

    def _fallback(self) -> GuardedFrontEnd:
        """The first of armpy's own front-ends, which says of other files what they look like."""
        if not self._found or not self._found[0].is_own:
            raise ParserError("there is no front-end", fix=self._left_out())
        own = self._found[0]
        others = [f"{f.name} ({', '.join(f.suffixes)})" for f in self._found if not f.is_own]
        hints = [f"Other front-ends are {', '.join(others)}"] if others else []
        hints += filter(None, [self._left_out()])
        return GuardedFrontEnd(own.front_end, own.candidate, self._plugins, ". ".join(hints))

    def _left_out(self) -> str:
        """Which plugins may have brought another one, and why they did not."""
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


class GuardedFrontEnd:
    """A front-end behind the plugin boundary.

    Parameters
    ----------
    front_end : FrontEnd
    candidate : Candidate
        The plugin that has registered it.
    plugins : HookPlugins
    hint : str
        Added to what it says of files that it does not understand.

    Attributes
    ----------
    is_own : bool
        Whether it is armpy's, whose parsers keep the limits and raise ParserError alone.
    """

    def __init__(
        self, front_end: FrontEnd, candidate: Candidate, plugins: HookPlugins, hint: str = ""
    ) -> None:
        self.front_end = front_end
        self.candidate = candidate
        self.is_own = plugins.is_own(candidate)
        self._around_calls = plugins.around_calls
        self.name, self.title = front_end.name, front_end.title
        self.suffixes, self.magic = front_end.suffixes, front_end.magic
        self.recognizes = front_end.recognizes
        self._hint = hint

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"front-end '{self.name}' of {self.candidate.source}"

    @property
    def missing_modules(self) -> list[str]:
        """The modules that the parser needs and that are not installed."""
        return [name for name in self.front_end.requires if not _is_installed(name)]

    def check_options(self, given: Mapping[str, object]) -> dict[str, object]:
        """Options checked and completed with defaults.

        Raises
        ------
        InvalidArgumentError
            If one is not declared, or its value not allowed.
        """
        declared = self.front_end.options
        scopes = check_options(declared, given, f"front-end '{self.name}'", whose="front-end")
        return {name: value for scope in OptionScope for name, value in scopes[scope].items()}

    def parse(self, file: ModelFile, settings: ParseSettings) -> Network | Graph:
        """The network of a file.

        Raises
        ------
        ParserError
            If the parser raises, or what it returns is no sound network, or larger than the limit.
        """

        def parse() -> Network | Graph:
            network = self.front_end.parse(file, settings)
            if not self.is_own:
                _check_network(network, settings.memory_limit_bytes)
            return network

        if settings.signature is not None and not self.is_own:
            self._check_signature(file, settings.signature)
        return self._contained(file, parse)

    def signatures(self, file: ModelFile) -> tuple[ModelSignature, ...]:
        """The signatures of a file; errors as for `parse`."""
        read = self.front_end.signatures
        if read is None:
            return ()
        return self._contained(file, lambda: _signatures(read(file)))

    def describe(self, file: ModelFile) -> dict[str, str]:
        """What the front-end tells of a file; errors as for `parse`."""
        tell = self.front_end.describe
        if tell is None:
            return {}
        return self._contained(file, lambda: {str(k): str(v) for k, v in tell(file).items()})

    def _check_signature(self, file: ModelFile, name: str) -> None:
        """Check that a file has a signature."""
        names = [signature.name for signature in self.signatures(file)]
        if name not in names:
            raise ParserError(
                f"the model has no signature '{name}'",
                where=file.label,
                expected=", ".join(f"'{n}'" for n in names) or "none, as it has no signatures",
            )

    def _contained(self, file: ModelFile, call: Callable[[], T]) -> T:
        """Call the front-end; whatever it raises is a ParserError that names it and the file."""
        self._check_requirements(file)
        try:
            with self._around_calls():
                return call()
        except ArmpyError as error:
            self._raise(file, error)
        except BaseException as error:
            let_user_interrupt(error)
            fix = ""
            if isinstance(error, ModuleNotFoundError) and self.front_end.install:
                fix = f"Run: {self.front_end.install}"
            raise ParserError(
                f"the front-end raised {describe(error)}",
                where=f"{file.label} / {self.where}",
                fix=fix,
            ) from error

    def _raise(self, file: ModelFile, error: ArmpyError) -> NoReturn:
        """Raise a front-end's own error."""
        if self.is_own:
            if self._hint and isinstance(error, ParserError):
                error.fix = ". ".join(filter(None, [error.fix.rstrip("."), self._hint]))
            raise error
        named = named_error(f"{file.label} / {self.where}", error)
        if isinstance(named, ParserError):
            raise named from error.__cause__
        raise ParserError(
            named.failed,
            where=named.where,
            expected=named.expected,
            actual=named.actual,
            fix=named.fix,
        ) from error

    def _check_requirements(self, file: ModelFile) -> None:
        """Check that the modules are installed that the parser needs."""
        missing = self.missing_modules
        if missing:
            install = self.front_end.install
            raise ParserError(
                f"the front-end needs {', '.join(missing)}, which is not installed",
                where=f"{file.label} / {self.where}",
                fix=f"Run: {install}" if install else "",
            )


def _why_taken(front_end: FrontEnd, others: Iterable[GuardedFrontEnd]) -> str:
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
    """Whether a module can be found; none is imported but the packages that it is in."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _check_network(network: object, memory_limit_bytes: int) -> None:
    """Check what a plugin's parser has returned; raises ArmpyError or what its objects raise."""
    if type(network) not in (Network, Graph):  # not of a subclass, whose methods are its own
        raise ParserError(
            "the parser's answer has the wrong type",
            expected="Network or Graph",
            actual=describe(network),
        )
    graph = network.build() if isinstance(network, Network) else network
    assert isinstance(graph, Graph)
    variable_bytes = 0
    for part in (graph, *nested_graphs(graph)):
        verify_graph(part)
        _check_names(part)
        for layer in part.layers:
            if not isinstance(layer.operation, Operation):
                raise ParserError("a layer has no operation", actual=describe(layer.operation))
            check_attributes(layer.operation)
        for value in part.values():
            if value.info.is_fully_shaped:
                _check_size(f"tensor '{value.name}'", value.info.size_bytes, memory_limit_bytes)
        variable_bytes += sum(variable.initial.nbytes for variable in part.variables)
    _check_size("all variables together", variable_bytes, memory_limit_bytes)


def _check_names(graph: Graph) -> None:
    """Check that inputs and outputs have names."""
    for name in (*(value.name for value in graph.inputs), *graph.output_names):
        if type(name) is not str:
            raise ParserError("a name is not text", actual=describe(name))


def _check_size(what: str, size_bytes: int, limit_bytes: int) -> None:
    """Check that something keeps the memory limit."""
    if size_bytes > limit_bytes:
        raise ParserError(
            f"{what}: larger than the memory limit",
            expected=f"at most {limit_bytes} bytes",
            actual=str(size_bytes),
        )


def _signatures(given: object) -> tuple[ModelSignature, ...]:
    """A front-end's signatures, checked."""
    if not isinstance(given, (list, tuple)):
        raise ParserError(
            "the answer has the wrong type",
            expected="a list of ModelSignature",
            actual=describe(given),
        )
    found = tuple(given)
    for signature in found:
        if not isinstance(signature, ModelSignature) or type(signature.name) is not str:
            raise ParserError(
                "a signature has the wrong type",
                expected="a ModelSignature with a name",
                actual=describe(signature),
            )
    names = [exact(signature.name) for signature in found]
    if len(set(names)) != len(names):
        raise ParserError("two signatures have one name", actual=", ".join(map(str, names)))
    return found
