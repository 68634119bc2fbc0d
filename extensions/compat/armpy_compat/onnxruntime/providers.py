"""Execution providers: armpy's backends under ONNX Runtime's form of names."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import armpy

CPU = "CPUExecutionProvider"
SUFFIX = "ExecutionProvider"

_ELSEWHERE = tuple(
    f"{name}{SUFFIX}"
    for name in (
        "Tensorrt",
        "NvTensorRTRTX",
        "CUDA",
        "MIGraphX",
        "ROCM",
        "OpenVINO",
        "Dnnl",
        "VitisAI",
        "QNN",
        "Nnapi",
        "VSINPU",
        "Js",
        "CoreML",
        "Dml",
        "Rknpu",
        "WebNN",
        "WebGpu",
        "Xnnpack",
        "CANN",
        "Azure",
    )
)
"""Providers of ONNX Runtime that programs ask for and armpy does not have."""

Provider: TypeAlias = "str | tuple[str, dict[Any, Any]]"  # Any: as programs give options


@cache
def preferred_backends() -> tuple[str, ...]:
    """Ids of the installed backends, most preferred first."""
    with armpy.Runtime() as runtime:
        return tuple(runtime.get_device_spec().supported_backends)


def get_available_providers() -> list[str]:
    """Return a provider for each installed backend, and the processor's, which uses them all."""
    return [*(f"{backend}{SUFFIX}" for backend in preferred_backends()), CPU]


def get_all_providers() -> list[str]:
    """Return the names of all providers that a session can be given."""
    available = get_available_providers()
    return [*(name for name in _ELSEWHERE if name not in available), *available]


def check_are_known(names: Iterable[str]) -> None:
    """Check the names of providers.

    Raises
    ------
    RuntimeError
        If there is no provider of a name.
    """
    known = get_all_providers()
    for name in names:
        if name not in known:
            raise RuntimeError(f"Unknown Provider Type: {name}")


def backends_of(names: Sequence[str], *, with_cpu: bool = True) -> list[str] | None:
    """Ids of the backends to use, most preferred first; None for armpy's own order.

    Parameters
    ----------
    names : sequence of str
        Available providers in order.
    with_cpu : bool
        Whether all backends follow those of the providers, as the processor's provider does.
    """
    preferred = preferred_backends()
    backends: dict[str, None] = {}
    for name in (*names, CPU) if with_cpu or not names else names:
        backends.update(dict.fromkeys(preferred if name == CPU else [name.removesuffix(SUFFIX)]))
    return None if (*backends,) == preferred else [*backends]


def check_and_normalize_provider_args(
    providers: Sequence[Provider] | None,
    provider_options: Sequence[dict[Any, Any]] | None,  # Any: as programs give options
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """Check providers and their options, and list them in one form.

    Returns
    -------
    tuple of (list of str, list of dict of str to str)

    Raises
    ------
    ValueError
        If they have another form.
    """
    settings: dict[str, dict[str, str]] = {}
    for name, options in _pairs(providers, provider_options):
        if name not in available_provider_names:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names."
                f"Available providers: '{', '.join(available_provider_names)}'",
                stacklevel=2,
            )
        if name in settings:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=2)
            continue
        settings[name] = {str(key): str(value) for key, value in options.items()}
    return [*settings], [*settings.values()]


def _pairs(
    providers: Sequence[Provider] | None, provider_options: Sequence[dict[Any, Any]] | None
) -> list[tuple[str, Mapping[Any, Any]]]:
    """Names and options as they are given."""
    if providers is None:
        return []
    if not isinstance(providers, Sequence):
        raise ValueError(  # noqa: TRY004 - its kind there
            f"'providers' should be a sequence. Got {providers!r}"
        )
    if provider_options is None:
        return [_pair(provider) for provider in providers]
    if not isinstance(provider_options, Sequence):
        raise ValueError(  # noqa: TRY004 - its kind there
            "'provider_options' should be a sequence."
        )
    if len(providers) != len(provider_options):
        raise ValueError(
            "'providers' and 'provider_options' should be the same length if both are given."
        )
    names = [provider for provider in providers if isinstance(provider, str)]
    if len(names) != len(providers):
        raise ValueError(
            "Only string values for 'providers' are supported if 'provider_options' is given."
        )
    if not all(isinstance(options, dict) for options in provider_options):
        raise ValueError("'provider_options' values must be dicts.")
    return [*zip(names, provider_options, strict=True)]


def _pair(provider: Provider) -> tuple[str, Mapping[Any, Any]]:
    """A provider's name and options."""
    match provider:
        case str():
            return provider, {}
        case (str() as name, dict() as options) if isinstance(provider, tuple):
            return name, options
    raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
