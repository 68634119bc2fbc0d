"""The options of the optimiser."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from armpy.backend import NO_OPTIONS, IMemoryOptimizerStrategy, OptionValues, PreparationRequest
from armpy.core.arguments import check_choice, check_instance, check_positive
from armpy.core.dataclass import dataclass
from armpy.errors import (
    Argument,
    InvalidArgumentError,
    did_you_mean,
    listed,
)
from armpy.plugins.proxy.guard import device_of
from armpy.store.settings import CompilationCaching
from armpy.types import BackendId, Preference, Priority

if TYPE_CHECKING:
    from armpy.backend import IBackendInternal
    from armpy.graph import Graph

ON_FALLBACK = ("allow", "warn", "error")
"""What `OptimizerOptions.on_fallback` can be."""

SHAPE_INFERENCE = ("infer_and_validate", "validate_only")
"""What `OptimizerOptions.shape_inference` can be."""

BUILT_IN_PASSES: Mapping[str, bool] = MappingProxyType(
    {
        "join_attention": True,
        "merge_casts": True,
        "merge_equal_siblings": True,
        "cancel_transposes": True,
        "reshape_transposes": True,
        "merge_reshapes": True,
        "remove_broadcasts": True,
        "cancel_conversions": True,
        "fold_pad": True,
        "join_written_out": True,
        "move_conversions": False,
        "fold_batch_norm": False,
        "fall_back_to_float32": False,
    }
)
"""Whether each pass runs if options say nothing, in the order in which they run.

Those that do leave layers out and leave the others on their backends. They change no bit of a
result, but `join_attention` and `join_written_out`, which round less often.
"""

OwnPass: TypeAlias = "Callable[[Graph, Any], Graph]"
"""A pass of the application's own, an `OptimizerPass`; its argument holds these options."""

FIRST_LEVEL_WITH_RELAXED = 28
"""NNAPI's feature level from which devices learn that float32 may be less exact."""


@dataclass(frozen=True, slots=True)
class OptimizerOptions:
    """Options of optimising a network.

    Raises InvalidArgumentError if an option has another value, or both reductions are asked for.

    Parameters
    ----------
    on_fallback : {"allow", "warn", "error"}
        What to do when a layer does not run on the first preferred backend, as that refuses it:
        nothing, log a warning, or raise `BackendCapabilityError`.
    model_options : mapping of str to mapping
        Checked options of scope MODEL by backend id, for backends that were given any.
    memory_strategies : mapping of str to IMemoryOptimizerStrategy
        By backend id; the default strategy where missing.
    reduce_fp32_to_fp16 : bool
        Compute float32 layers in float16, wherever operations and backends do that. Inputs,
        outputs and variables stay float32.
    reduce_fp32_to_bf16 : bool
        Round images, rows and weights of convolutions and fully connected layers to bfloat16,
        where the backend converts to that. Sums, biases and results stay float32.
    shape_inference : {"infer_and_validate", "validate_only"}
        Whether shapes that are not known when a network is loaded follow from each call's, or
        are an error.
    passes : mapping of str to (bool or OptimizerPass)
        By name, whether a pass runs, where that is not to be as `armpy.compiler.BUILT_IN_PASSES`
        says, or a pass of the application's own. Those of new names run after the built-in ones,
        in this order.
    affinity : mapping of str to str
        By layer name or pattern (``conv*``, as of `fnmatch`), the only backend that may run these
        layers. The name of an operator that became several layers means all of them: ``Identity``
        also ``Identity:positions``. Of several patterns, the first one that matches counts.
    preference : Preference
        What decides where layers run: the order of the backends; the same with accelerators
        first, an error without one and a warning for layers that run elsewhere (``NPU``); or what
        devices cost in time or power, copies included, by a plugin such as armpy-tools. Passed to
        backends when they prepare.
    decides_by_preference : bool
        False if `preference` is for the backends alone, and their order decides in any case.
    priority : Priority
        Of the network's executions; passed to backends when they prepare.
    preparation_timeout_s : float, optional
        How long a backend may take to prepare one part, in seconds. One that takes longer is no
        longer waited for, and its part goes to the next backend. None for no limit. Where that is
        set, backends prepare in threads of their own.
    feature_levels : mapping of str to int
        By name of a layer, also of graphs that control flow runs, the feature level that a backend
        must have to be asked about it, where it is not to be any.
    caching : CompilationCaching, optional
        Where compiled parts are kept. Left out, as `RuntimeOptions` says.
    dump_graphs : str
        A folder for drawings of the graph at each stage, for Graphviz, and for the parts that
        backends get, as .tflite files with inputs and CpuRef's answers; if empty, the one that the
        environment variable ``ARMPY_DUMP_GRAPHS`` names.
    relaxed : bool
        Whether backends may compute float32 with the range and precision of float16;
        passed to them when they prepare. Unlike `reduce_fp32_to_fp16` it changes no network.

    References
    ----------
    Arm NN OptimizerOptionsOpaque; NNAPI ``relaxComputationFloat32toFloat16``.
    """

    on_fallback: str = "allow"
    model_options: Mapping[BackendId, OptionValues] = field(default_factory=dict)
    memory_strategies: Mapping[BackendId, IMemoryOptimizerStrategy] = field(default_factory=dict)
    reduce_fp32_to_fp16: bool = False
    reduce_fp32_to_bf16: bool = False
    shape_inference: str = "infer_and_validate"
    passes: Mapping[str, bool | OwnPass] = field(default_factory=dict)
    preference: Preference = Preference.ORDER
    priority: Priority = Priority.MEDIUM
    preparation_timeout_s: float | None = None
    feature_levels: Mapping[str, int] = field(default_factory=dict)
    caching: CompilationCaching | None = None
    dump_graphs: str = ""
    relaxed: bool = False
    decides_by_preference: bool = True
    affinity: Mapping[str, BackendId] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice(self.on_fallback, "on_fallback", ON_FALLBACK)
        check_choice(self.shape_inference, "shape_inference", SHAPE_INFERENCE)
        if self.reduce_fp32_to_fp16 and self.reduce_fp32_to_bf16:
            raise InvalidArgumentError(
                "float32 can be reduced to one type",
                where="reduce_fp32_to_bf16",
                expected="reduce_fp32_to_fp16 or reduce_fp32_to_bf16",
                actual="both",
            )
        check_choice(self.preference, "preference", tuple(Preference))
        # Its text is equal to a member but not identical, and others ask by identity.
        object.__setattr__(self, "preference", Preference(self.preference))
        check_choice(self.priority, "priority", tuple(Priority))
        if self.preparation_timeout_s is not None:
            name = "preparation_timeout_s"
            check_positive(getattr(self, name), name, failed="the preparation has no time")
        check_instance(self.passes, "passes", Mapping)
        _check_passes(self.passes)
        check_instance(self.affinity, "affinity", Mapping, fix="Write {'conv*': 'CpuRef'}")
        for text in (*self.affinity, *self.affinity.values()):
            check_instance(text, "affinity", str)

    def assigned_backend(self, layer: str) -> BackendId | None:
        """Return the only backend that may run a layer of this name; None if any may."""
        for pattern, backend_id in self.affinity.items():
            if _is_meant(layer, pattern):
                return backend_id
        return None

    def check_affinity(self, layers: Iterable[str], backends: Collection[BackendId]) -> None:
        """Check that every pattern matches a layer, and that every backend is used.

        Parameters
        ----------
        layers : iterable of str
            Names of all layers, also of those in graphs that control flow runs.

        Raises
        ------
        InvalidArgumentError
        """
        names = [*layers] if self.affinity else []
        for pattern, backend_id in self.affinity.items():
            if backend_id not in backends:
                raise InvalidArgumentError(
                    f"the runtime does not use the backend '{backend_id}'",
                    argument=Argument("affinity", {pattern: backend_id}),
                    expected=f"a pattern and one of {', '.join(backends)}",
                    actual=f"'{backend_id}'",
                    fix=did_you_mean(
                        backend_id,
                        backends,
                        "Choose an expected backend, or add this one to the backends",
                    ),
                )
            if not any(_is_meant(name, pattern) for name in names):
                raise InvalidArgumentError(
                    f"no layer of the network has the name '{pattern}', or matches it",
                    argument=Argument("affinity"),
                    expected=f"the name of a layer ({listed(sorted(names, key=len), 1)}) or a "
                    "pattern",
                    actual=f"'{pattern}'",
                    fix=did_you_mean(
                        pattern.strip("*"),
                        names,
                        "List all names with 'armpy inspect MODEL --layers'",
                    ),
                )

    @property
    def is_placed_by_cost(self) -> bool:
        """Return whether something else than the order of the backends decides where layers run."""
        orders = Preference.ORDER, Preference.NPU
        return self.decides_by_preference and self.preference not in orders

    def request_for(
        self, backend: IBackendInternal, deadline_s: float | None = None
    ) -> PreparationRequest:
        """Make the request to ask a backend about a network, or to prepare a part of it."""
        knows_relaxed = device_of(backend).feature_level >= FIRST_LEVEL_WITH_RELAXED
        return PreparationRequest(
            self.model_options.get(backend.get_id(), NO_OPTIONS),
            self.preference,
            Priority(self.priority),
            deadline_s,
            self.relaxed and knows_relaxed,
        )


def _is_meant(layer: str, pattern: str) -> bool:
    """Return whether a pattern matches a layer's name, or that of the operator it is a part of."""
    return fnmatchcase(layer, pattern) or fnmatchcase(layer, f"{pattern}:*")


def _check_passes(passes: Mapping[str, bool | OwnPass]) -> None:
    """Check what options say of passes.

    Raises InvalidArgumentError if a name that stands for no pass is switched, or something else is
    in the place of one.
    """
    for name, choice in passes.items():
        if isinstance(choice, bool):
            if name not in BUILT_IN_PASSES:
                raise InvalidArgumentError(
                    f"there is no pass '{name}' to be switched",
                    where="passes",
                    expected=", ".join(BUILT_IN_PASSES),
                    fix="Give a function for a pass of your own",
                )
        elif not callable(choice):
            raise InvalidArgumentError(
                "a pass cannot be called",
                where=f"passes['{name}']",
                expected="True, False, or a function of a graph and a PassContext",
                actual=repr(choice),
            )
