"""Choices between ways of lowering, decided by a model of the cost or by measurement."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa

if TYPE_CHECKING:  # saved programs run without graphs
    from armpy.graph import Layer

Option: TypeAlias = tuple[int, ...]
"""One of several ways, as the numbers that it differs in."""

OptionT = TypeVar("OptionT", bound=Option)

_log = logging.getLogger("armpy.NumbaAcc")


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice that was made."""

    key: str  # the decision, and its shape; equal keys are equal choices
    layers: tuple[Layer, ...]  # those that were lowered together when it was made
    options: tuple[Option, ...]  # what could have been chosen
    modelled: Option  # the cost model's choice
    chosen: Option
    cost: float  # of the modelled option, as `Choices.choose` takes it


class Choices:
    """Decides for the lowerings of one region.

    Parameters
    ----------
    model : MachineModel
        What things cost, for those who say how much: costs are nanoseconds, all in all.
    measured : mapping of str to Option
        Answers by key that take the place of the model's.

    Attributes
    ----------
    made : dict of str to Decision
        In the order of the region, each key once.
    costs : dict
        Costs of the ways to do something, for callers who ask about it again and
        again: the same shapes come back in every layer of a transformer.
    """

    def __init__(
        self, isa: Isa, model: MachineModel, measured: Mapping[str, Option] | None = None
    ) -> None:
        self.isa = isa
        self.model = model
        self.made: dict[str, Decision] = {}
        self.costs: dict[Hashable, dict[Any, float]] = {}  # Any: ways of many types
        self._measured = measured or {}
        self._layers: tuple[Layer, ...] = ()

    def begin(self, layers: Sequence[Layer]) -> None:
        """Say which layers are lowered together from now on."""
        self._layers = tuple(layers)

    def choose(
        self,
        family: str,
        shape: Sequence[int],
        options: Sequence[OptionT],
        cost: Callable[[OptionT], float],
        others: Sequence[OptionT] = (),
    ) -> OptionT:
        """The best of several ways.

        Parameters
        ----------
        family
            The decision, such as ``convolution_u8 tile``.
        shape
            All numbers that the cost depends on.
        options
            At least one.
        cost : callable
            About how long one takes, in nanoseconds or in proportion; of equal ones the first is
            best.
        others
            More ways, right as well, that only a measurement can prefer.
        """
        key = f"{family} {self.isa.name} {'x'.join(map(str, shape))}"
        modelled = min(options, key=cost)
        choosable = tuple(dict.fromkeys((*options, *others)))
        chosen = self._measured_of(key, choosable) or modelled
        decision = Decision(key, self._layers, choosable, modelled, chosen, cost(modelled))
        self.made.setdefault(key, decision)
        return chosen

    def _measured_of(self, key: str, options: Sequence[OptionT]) -> OptionT | None:
        """The option that was measured fastest; None if there is none, or if it is obsolete."""
        if key not in self._measured:
            return None
        fastest = next((option for option in options if option == self._measured[key]), None)
        if fastest is None:
            _log.info("the measured choice for %s does not fit and is not used", key)
        return fastest
