"""Options of ``python -m armpy_serving.kserve``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from kserve.model_server import parser as kserve_parser

from armpy.types import Preference
from armpy_serving.health import HealthRules
from armpy_serving.kserve.command_line import CommandLineParser

_LOAD_OPTIONS = (
    "backends",
    "num_threads",
    "on_fallback",
    "memory_limit_bytes",
    "preference",
    "affinity",
    "spread",
    "isolation",
    "compile",
)


def make_parser() -> argparse.ArgumentParser:
    """KServe's options, and armpy's beside them.

    Notes
    -----
    Missing settings of armpy are looked up in the environment: ``ARMPY_SERVING_HOST`` for
    ``--host``, and so on.
    """
    parser = CommandLineParser(
        prog="python -m armpy_serving.kserve",
        description="Serve models with KServe's server.",
        parents=[kserve_parser],
    )
    own = parser.add_argument_group("armpy")
    own.add_argument("--model_dir", default="/mnt/models", help="a model file, or a folder of some")
    own.add_argument("--host", default="127.0.0.1", help="where to listen; 0.0.0.0 in a container")
    own.add_argument("--backends", type=_names, help="in order of preference, with commas between")
    own.add_argument("--num_threads", type=int, help="threads of an inference")
    own.add_argument("--on_fallback", choices=["allow", "warn", "error"])
    own.add_argument("--memory_limit_bytes", type=int, help="of a model's tensors")
    own.add_argument("--preference", choices=[*Preference], help="what decides where layers run")
    own.add_argument(
        "--compile",
        choices=["wait", "background"],
        help="wait until all is compiled, or let other backends answer until then",
    )
    own.add_argument("--affinity", type=_pairs, help="PATTERN=BACKEND of layers, with commas")
    own.add_argument(
        "--spread", choices=["calls", "rows"], help="unit of work spread over all backends"
    )
    own.add_argument("--isolation", choices=["process"], help="run backends in their own processes")
    own.add_argument(
        "--hang_s",
        type=float,
        default=HealthRules().hang_s,
        help="seconds after which an unanswered request makes a model not ready",
    )
    own.add_argument(
        "--ready_when",
        choices=["answering", "compiled"],
        default="answering",
        help="ready as soon as requests are answered, or when all is compiled in the background",
    )
    own.add_argument("--max_waiting", type=int, default=1024, help="requests of a model at a time")
    own.add_argument("--max_body_bytes", type=int, default=256 << 20, help="of a request by HTTP")
    own.add_argument(
        "--repository_api",
        type=str.lower,
        choices=["true", "false"],
        help="whether clients may load and unload models; if not given, at the loopback alone",
    )
    own.add_argument("--grace_period", type=int, default=30, help="seconds to finish at the end")
    variables = {
        action.dest: os.environ.get(f"ARMPY_SERVING_{action.dest.upper()}")
        for action in own._group_actions
    }
    # A default that is a string is parsed like an argument.
    defaults = {name: text for name, text in variables.items() if text is not None}
    parser.set_defaults(**defaults)
    # Three lines of log take longer than the answer; /metrics has the times.
    parser.set_defaults(enable_latency_logging=False)
    return parser


def load_options(given: argparse.Namespace) -> dict[str, Any]:  # Any: options by name
    """Options of `armpy.load`."""
    options = {name: getattr(given, name) for name in _LOAD_OPTIONS}
    return {name: value for name, value in options.items() if value is not None}


def health_rules(given: argparse.Namespace) -> HealthRules:
    """Rules by which models are ready."""
    return HealthRules(given.hang_s, given.ready_when == "compiled")


def _names(text: str) -> Sequence[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _pairs(text: str) -> dict[str, str]:
    """Backends by patterns of layer names."""
    pairs = [name.rpartition("=") for name in _names(text)]
    if not all(pattern and equals and backend for pattern, equals, backend in pairs):
        raise argparse.ArgumentTypeError(f"expected PATTERN=BACKEND,...; got '{text}'")
    return {pattern: backend for pattern, _, backend in pairs}
