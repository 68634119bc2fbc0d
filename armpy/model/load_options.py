"""Options of loading: one list, which all that treats them is derived from.

Each field of `LoadOptions` has its `OptionInfo` in the field's metadata. From it come the key of
the model cache, what a compiled model can honour, what is refused beside a runtime, how a model is
pickled, the options of the command line, and the table of docs/reference/load_options.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError

if TYPE_CHECKING:
    from armpy.execution.runtime import Runtime
    from armpy.execution.setup.options import RuntimeOptions
    from armpy.execution.setup.properties import NetworkProperties
    from armpy.store.archive.signing import KeySource

_INFO = "info"
"""Key of the properties in a field's metadata."""


class OptionInfo(NamedTuple):
    """Properties of an option of loading."""

    help: str  # for the command line and the documentation
    # For the model cache: the value decides what is compiled, so that it belongs to the key; any
    # value loads the same; or a model that is loaded with one is not kept.
    cache: Literal["key", "any", "never"]
    # Why a compiled model is loaded as a network for it; empty if its programs run with any value.
    needs_network: str = ""
    neutral: object = None  # the value that asks for nothing, besides None
    # Whether a compiled model says with which value it was made, and runs at once with that.
    is_saved: bool = False
    is_runtime_option: bool = False  # whether it becomes an option of the runtime
    allowed_with_runtime: bool = True  # whether it can be given together with a runtime
    flags: tuple[str, ...] = ()  # names on the command line; empty if it is not there
    metavar: str | None = None
    choices: tuple[str, ...] = ()  # all values that there are
    minimum: int | None = None  # the smallest number
    is_repeatable: bool = False  # whether it may be repeated there

    def is_neutral(self, value: object) -> bool:
        """Return whether a value asks for nothing that would not be done without it."""
        return value is None or value == self.neutral


# Any: `OptionInfo` names the properties, and the field has a type of its own.
def _option(help: str, *, default: object = None, **properties: Any) -> Any:
    """Dataclass field whose metadata holds the option's properties."""
    return field(default=default, metadata={_INFO: OptionInfo(help, **properties)})


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of `armpy.load`, which documents them; None for a missing one."""

    backends: Sequence[str] | None = _option(
        "Ids in order of preference; may be repeated; all installed ones if left out.",
        cache="key",
        needs_network="other backends are wanted",
        is_saved=True,
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--backends", "--backend"),
        metavar="A,B",
        is_repeatable=True,
    )
    num_threads: int | None = _option(
        "For backends that have threads of their own.",
        cache="key",
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--num-threads", "--threads"),
        minimum=1,
    )
    signature: str | None = _option(
        "Use this signature of the model.",
        cache="never",
        needs_network="a signature is asked for",
        flags=("--signature",),
        metavar="NAME",
    )
    front_end: str | None = _option(
        "Parser of the model; if left out, its contents and suffix select it.",
        cache="never",
        needs_network="front-ends do not read it",
        neutral="",
        flags=("--front-end",),
        metavar="NAME",
    )
    front_end_options: Mapping[str, object] | None = _option(
        "An option of the front-end; may be repeated.",
        cache="never",
        needs_network="front-ends do not read it",
        neutral={},
        flags=("--front-end-option",),
        metavar="NAME=VALUE",
        is_repeatable=True,
    )
    on_fallback: str | None = _option(
        "What to do when a layer does not run on the first preferred backend.",
        cache="never",
        needs_network="fallback is watched",
        neutral="allow",
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--on-fallback",),
        choices=("allow", "warn", "error"),
    )
    preference: str | None = _option(
        "Place layers by the backends' order, with NPUs first, or by what devices cost.",
        cache="key",
        needs_network="another preference is wanted",
        neutral="preference",
        is_saved=True,
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--preference",),
        choices=("preference", "npu", "fastest", "least_power", "sustained"),
    )
    affinity: Mapping[str, str] | None = _option(
        "The only backend that may run the layers of a name or pattern; may be repeated.",
        cache="never",
        needs_network="layers are assigned to backends",
        neutral={},
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--affinity",),
        metavar="PATTERN=BACKEND",
        is_repeatable=True,
    )
    spread: str | None = _option(
        "Spread calls, or their rows too, over all backends by measured speed.",
        cache="never",
        needs_network="calls are spread over several backends",
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--spread",),
        choices=("calls", "rows"),
    )
    isolation: str | Mapping[str, str] | None = _option(
        "Run all backends, or those of these ids, in processes of their own; may be repeated.",
        cache="never",
        needs_network="backends are isolated",
        neutral="none",
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--isolation",),
        metavar="[ID=]process",
        is_repeatable=True,
    )
    trusted_keys: Sequence[KeySource] | None = _option(
        "A public key, as PEM file or ed25519:BASE64, whose holder's compiled models may bring "
        "code; may be repeated.",
        cache="never",
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--trusted-key",),
        metavar="KEY",
        is_repeatable=True,
    )
    code: str | None = _option(
        "Whose code in compiled models to run: 'trusted' (your own folders and trusted keys), "
        "'signed' (trusted keys only), 'never'.",
        cache="never",
        neutral="trusted",
        is_runtime_option=True,
        allowed_with_runtime=False,
        flags=("--code",),
        choices=("trusted", "signed", "never"),
    )
    memory_limit_bytes: int | None = _option(
        "Refuse a model that takes more; 4 GiB if left out.", cache="key", is_runtime_option=True
    )
    quantize_inputs: bool = _option(
        "Quantise real numbers given for quantised inputs.",
        cache="any",
        neutral=False,
        default=False,
    )
    dequantize_outputs: bool = _option(
        "Hand over real numbers for quantised outputs.", cache="any", neutral=False, default=False
    )
    compile: str | None = _option(
        "Wait until all is compiled, or let other backends answer until then.",
        cache="any",
        neutral="wait",
        choices=("wait", "background"),
    )
    runtime: Runtime | None = _option(
        "Load on this runtime.", cache="never", needs_network="a runtime is given"
    )
    properties: NetworkProperties | None = _option(
        "`NetworkProperties`: profiling, memory, compilation.",
        cache="never",
        needs_network="properties are given",
    )

    @property
    def in_background(self) -> bool:
        """Return whether calls are answered before all is compiled."""
        return self.compile == "background"

    def given(self) -> dict[str, Any]:  # Any: as `armpy.load` takes them
        """The options whose values are not those of options that are left out, by name."""
        return {n: value for n in OPTIONS if (value := getattr(self, n)) != _DEFAULTS[n]}

    def unusual(self) -> dict[str, Any]:  # Any: as `armpy.load` takes them
        """The options that ask for something, by name."""
        return {n: value for n, value in self.given().items() if not OPTIONS[n].is_neutral(value)}

    def on(self, runtime: Runtime) -> LoadOptions:
        """The same on a runtime that was made with those of them that are the runtime's."""
        ignored = [name for name, info in OPTIONS.items() if not info.allowed_with_runtime]
        values: dict[str, Any] = {name: _DEFAULTS[name] for name in ignored}  # Any: by name
        return replace(self, **values, runtime=runtime)

    def cache_key(self) -> tuple[object, ...] | None:
        """The values that decide the compilation; None for a model that is not to be stored."""
        # A kept model would not report a missing NPU, and layers that run elsewhere.
        if self.preference == "npu":
            return None
        for name, info in OPTIONS.items():
            if info.cache == "never" and not info.is_neutral(getattr(self, name)):
                return None
        # As they are: a plugin can answer missing ones, which are not neutral then.
        return tuple([getattr(self, n) for n, info in OPTIONS.items() if info.cache == "key"])

    def why_network(self, saved: Mapping[str, object]) -> str:
        """Why a compiled model has to be loaded as a network; empty if its programs will do.

        Parameters
        ----------
        saved : mapping of str to object
            The options that the file says it was made with.
        """
        differing = differing_options(self, saved)
        for name, info in OPTIONS.items():
            is_done = info.is_neutral(getattr(self, name))
            if info.is_saved:
                is_done = name not in differing
            if info.needs_network and not is_done:
                return info.needs_network
        return ""

    def values_for_runtime(self) -> dict[str, Any]:  # Any: as `RuntimeOptions` takes them
        """Those that are given and are options of the runtime."""
        return {n: value for n, value in self.given().items() if OPTIONS[n].is_runtime_option}

    def runtime_options(self) -> RuntimeOptions:
        """The options of the runtime that is given, or of the one to be made.

        Raises
        ------
        InvalidArgumentError
            If there is a runtime, and options that it would not look at.
        """
        if self.runtime is None:
            from armpy.execution.setup.options import RuntimeOptions  # noqa: PLC0415

            return RuntimeOptions(**self.values_for_runtime())
        ignored = {n: v for n, v in self.given().items() if not OPTIONS[n].allowed_with_runtime}
        if ignored:
            raise InvalidArgumentError(
                "options cannot be combined with a runtime",
                where="load",
                expected="no options that belong to the runtime",
                actual=", ".join(f"{name}={value!r}" for name, value in ignored.items()),
                fix="Pass them to RuntimeOptions when you create the runtime",
            )
        from armpy.core.arguments import check_instance  # noqa: PLC0415
        from armpy.execution.runtime import Runtime  # noqa: PLC0415

        check_instance(self.runtime, "load's runtime", Runtime, fix="Write Runtime(options)")
        return self.runtime.options


def options_to_save(options: LoadOptions | RuntimeOptions) -> dict[str, object]:
    """Options that a compiled model says it was made with, as its file has them."""
    return {name: _plain(getattr(options, name)) for name, item in OPTIONS.items() if item.is_saved}


def differing_options(
    options: LoadOptions | RuntimeOptions, saved: Mapping[str, object]
) -> list[str]:
    """Names of options that ask for something else than a compiled model was made with."""
    wanted = options_to_save(options)
    return [name for name, value in wanted.items() if value not in (None, saved.get(name))]


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return [*value] if is_list else value  # type: ignore[misc]  # mypy follows no variable


_DEFAULTS: Mapping[str, object] = {option.name: option.default for option in fields(LoadOptions)}

OPTIONS: Mapping[str, OptionInfo] = {
    option.name: option.metadata[_INFO] for option in fields(LoadOptions)
}
"""Properties of the options, by name, in the order in which the command line lists them."""
