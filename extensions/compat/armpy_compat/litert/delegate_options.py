"""Options of Arm NN's delegate, and what they are in armpy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import armpy
from armpy_compat.backend_names import armpy_id

_CPU_BACKENDS = ("NumbaAcc", "CpuRef")
_MOST_THREADS = 64
_SEVERITIES = ("trace", "debug", "info", "warning", "error", "fatal")


class DelegateOptions(NamedTuple):
    """Options of a delegate, checked."""

    backends: tuple[str, ...] | None = None
    """Ids of backends, in armpy's words; None for all that are installed."""
    dynamic_backends_path: str = ""
    num_threads: int | None = None
    falls_back: bool = True
    """Whether the processor runs what no named backend takes."""

    def load_options(self) -> dict[str, Any]:  # Any: as `armpy.load` takes them
        """Options of `armpy.load`.

        Raises
        ------
        ValueError
            If no named backend is installed.
        """
        registry = armpy.backend_registry(dynamic_backends_path=self.dynamic_backends_path or ())
        backends = self.backends and self._installed(registry.backend_ids)
        options: dict[str, Any] = {
            "backends": backends,
            "num_threads": self.num_threads,
        }  # as above
        if not self.dynamic_backends_path:
            return {name: value for name, value in options.items() if value is not None}
        return {"runtime": armpy.Runtime(armpy.RuntimeOptions(**options, registry=registry))}

    def _installed(self, installed: tuple[str, ...]) -> list[str]:
        """The named backends that are installed, and those that run the rest."""
        named = self.backends or ()
        missing = [name for name in named if name not in installed]
        usable = [name for name in named if name in installed]
        if not usable:
            raise ValueError(
                f"None of the preferred backends {list(named)} are supported."
                f" Installed are {', '.join(installed)}"
            )
        if missing:
            warnings.warn(f"backends that are not installed: {', '.join(missing)}", stacklevel=2)
        rest = [name for name in _CPU_BACKENDS if name in installed and name not in usable]
        return [*usable, *rest] if self.falls_back else usable


def read_delegate_options(options: Mapping[str, object]) -> DelegateOptions:
    """Check the options of a delegate; keys and values are texts, or what `str` makes them of.

    Raises
    ------
    ValueError
        If an option is unknown, has an unusable value, or asks for what this delegate has not.
    """
    values: dict[str, object] = {}
    for key, value in options.items():
        name, text = str(key), str(value)
        if name in _READERS:
            field, read = _READERS[name]
            values[field] = read(name, text)
        elif name in _WITHOUT_EFFECT:
            _WITHOUT_EFFECT[name](name, text)
        elif name not in _INSTEAD:
            known = sorted([*_READERS, *_WITHOUT_EFFECT, *_INSTEAD])
            raise ValueError(f"Unknown option '{name}'. Known are {', '.join(known)}")
        elif text.lower() not in ("", "0", "false"):
            raise ValueError(f"The option '{name}' is not supported. {_INSTEAD[name]}")
    return DelegateOptions(**values)  # type: ignore[arg-type]  # each reader returns its field's


def _text(_: str, text: str) -> str:
    return text


def _backends(name: str, text: str) -> tuple[str, ...]:
    """Ids of backends, comma separated."""
    ids = [part.strip() for part in text.split(",") if part.strip()]
    if not ids:
        raise _unusable(name, text, "ids such as CpuAcc,CpuRef")
    return tuple(dict.fromkeys(map(armpy_id, ids)))


def _flag(name: str, text: str) -> bool:
    """True or false."""
    lower = text.lower()
    if lower not in ("true", "false", "1", "0"):
        raise _unusable(name, text, "true or false")
    return lower in ("true", "1")


def _whole(least: int, most: int) -> Callable[[str, str], int]:
    """A reader of whole numbers of a range."""

    def read(name: str, text: str) -> int:
        if not text.isdigit() or not least <= int(text) <= most:
            raise _unusable(name, text, f"{least} to {most}")
        return int(text)

    return read


def _severity(name: str, text: str) -> str:
    """A level of logging."""
    if text.lower() not in _SEVERITIES:
        raise _unusable(name, text, " or ".join(_SEVERITIES))
    return text


def _unusable(name: str, text: str, expected: str) -> ValueError:
    return ValueError(f"The option '{name}' cannot be '{text}'. Expected {expected}")


_READERS: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "backends": ("backends", _backends),
    "dynamic-backends-path": ("dynamic_backends_path", _text),
    "number-of-threads": ("num_threads", _whole(1, _MOST_THREADS)),
    "disable-tflite-runtime-fallback": (
        "falls_back",
        lambda name, text: not _flag(name, text),
    ),
}
"""Options with an effect: the field, and the reader of its value."""

_WITHOUT_EFFECT: dict[str, Callable[[str, str], object]] = {
    "logging-severity": _severity,
    "gpu-tuning-level": _whole(0, 3),
    "gpu-tuning-file": _text,
    "gpu-mlgo-tuning-file": _text,
    "gpu-enable-profiling": _flag,
    "gpu-kernel-profiling-enabled": _flag,
    "save-cached-network": _flag,
    "cached-network-filepath": _text,
    "enable-fast-math": _flag,
    "reduce-fp32-to-fp16": _flag,
    "reduce-fp32-to-bf16": _flag,
    "infer-output-shape": _flag,
    "allow-expanded-dims": _flag,
    "memory-import": _flag,
    "internal-profiling-detail": _whole(1, 2),
    "counter-capture-period": _whole(0, 2**32 - 1),
    "profiling-file-format": _text,
}
"""Options that change nothing: speed, caches and logs are armpy's own matter."""

_PROFILE = "Use armpy.RuntimeOptions(profiling=True) and Model.profiler, or `armpy profile`"

_INSTEAD = {
    "debug-data": "Use armpy.load(...).run(inputs, debug=function)",
    "enable-internal-profiling": _PROFILE,
    "enable-external-profiling": _PROFILE,
    "timeline-profiling": _PROFILE,
    "outgoing-capture-file": _PROFILE,
    "incoming-capture-file": _PROFILE,
    "file-only-external-profiling": _PROFILE,
    "serialize-to-dot": "Use `armpy inspect`, or armpy.load(...).placement",
}
"""Options that ask for files or output which only armpy's own interface makes."""
