"""Capabilities: features of a backend beyond running layers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias

from armpy.backend.options import OptionValue
from armpy.errors import InvalidArgumentError


class Capability(enum.StrEnum):
    """Names of the capabilities that the core asks about.

    A backend may list others for its own use. Only backends with ``DynamicOutputShapes`` and
    ``Strings`` are asked about such layers.

    Notes
    -----
    ``DynamicOutputShapes``: it can run layers whose output shapes depend on elements, and is asked
    about them with these infos. Their tensors are in host memory, whatever its handle factories
    say; such an output arrives as a `DynamicTensorHandle`.

    ``CancellableExecution``: its workloads look at `current_cancellation` often enough to stop
    within 10 ms. Executions of others are abandoned: they run to their end unwatched.

    ``TracedSizes``: it takes layers and subgraphs in whose shapes sizes are traced
    (`armpy.core.symbolic.Size` instead of integers); its programs of those are `IResizableProgram`.

    ``LoopTimeout``: its workloads end their loops in time, by `control_flow_time_left_s`, with an
    `armpy.errors.ExecutionTimeoutError`. The core stops the loops of others: they run on their
    own thread, which is abandoned.

    ``OwnCache``: it keeps compiled code for the next process itself, and lists it in
    `IBackendInternal.get_caches`; the core caches nothing for it.

    ``Strings``: it takes layers with tensors of ``DataType.STRING``, whose arrays hold ``str``
    objects in host memory, outside of arenas.
    """

    NON_CONST_WEIGHTS = "NonConstWeights"
    PROTECTED_CONTENT_ALLOCATION = "ProtectedContentAllocation"
    MULTI_AXIS_PACKING = "MultiAxisPacking"
    SINGLE_AXIS_PACKING = "SingleAxisPacking"
    ALL_OR_NOTHING = "AllOrNothing"
    DYNAMIC_OUTPUT_SHAPES = "DynamicOutputShapes"
    CANCELLABLE_EXECUTION = "CancellableExecution"
    TRACED_SIZES = "TracedSizes"
    LOOP_TIMEOUT = "LoopTimeout"
    OWN_CACHE = "OwnCache"
    STRINGS = "Strings"


Capabilities: TypeAlias = Mapping[str, OptionValue]
"""Values by name; a name that is missing is the same as False."""


def has_capability(name: str, capabilities: Capabilities) -> bool:
    """Say whether a capability is listed, whatever its value.

    Parameters
    ----------
    capabilities : mapping of str to value, or sequence of pairs
        Capabilities, as `IBackendInternal.get_capabilities` may return them.

    Raises
    ------
    InvalidArgumentError
        If they are neither.
    """
    return name in _by_name(capabilities)


def has_matching_capability(name: str, value: OptionValue, capabilities: Capabilities) -> bool:
    """Say whether a capability is listed with this value, of this type.

    Parameters
    ----------
    capabilities : mapping of str to value, or sequence of pairs
        Capabilities, as for `has_capability`, with the same errors.
    """
    listed = _by_name(capabilities).get(name)
    # The type as well: to Python, 1 equals True.
    return type(listed) is type(value) and listed == value


def _by_name(capabilities: object) -> Mapping[str, OptionValue]:
    """The values by name, from a mapping or pairs."""
    if isinstance(capabilities, Mapping):
        return capabilities
    try:
        return dict(capabilities)  # type: ignore[call-overload, no-any-return]  # or it raises
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            "the capabilities are not names with values",
            expected="a mapping, or pairs such as [('ProtectedContentAllocation', True)]",
            actual=repr(capabilities),
            fix="Pass what the backend's get_capabilities returns",
        ) from error
