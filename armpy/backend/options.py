"""Options of a backend, declared as data and checked before the backend sees them."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError, did_you_mean

OptionValue: TypeAlias = bool | int | float | str
"""Types that an option's value can have."""

OptionValues: TypeAlias = Mapping[str, OptionValue]
"""Options by name, every declared one included."""

NO_OPTIONS: OptionValues = MappingProxyType({})
"""No options at all."""

_NOUNS = {"bool": "True or False", "int": "a whole number", "float": "a number", "str": "a string"}


class OptionScope(enum.Enum):
    """Scope of an option: runtime or model.

    References
    ----------
    Arm NN's backend options of ``CreationOptions`` and model options of ``OptimizerOptions``.
    """

    RUNTIME = "runtime"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class BackendOption:
    """One option that a backend understands.

    Examples
    --------
    >>> BackendOption("num_threads", 0, "Threads to use; 0 is one per core.", minimum=0).check(2)
    2
    """

    name: str  # in snake case
    default: OptionValue  # its type is the option's type
    help: str  # one sentence for the command line
    scope: OptionScope = OptionScope.RUNTIME
    """RUNTIME: for `IBackendInternal.create_backend_context`; MODEL: for the methods of one
    network.
    """
    choices: tuple[OptionValue, ...] = ()  # the only values allowed; empty if any is
    # Bounds, inclusive.
    minimum: float | None = None
    maximum: float | None = None

    @property
    def type_name(self) -> str:
        """``bool``, ``int``, ``float`` or ``str``."""
        return type(self.default).__name__

    @property
    def allowed(self) -> str:
        """Return the allowed values, in words."""
        noun = _NOUNS.get(self.type_name, self.type_name)
        if self.choices:
            return "one of " + ", ".join(map(repr, self.choices))
        if self.minimum is not None and self.maximum is not None:
            return f"{noun} from {self.minimum:g} to {self.maximum:g}"
        bounds = {"at least": self.minimum, "at most": self.maximum}
        words = [f" of {word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        return noun + "".join(words)

    def check(self, value: object, where: str = "") -> OptionValue:
        """A value that is allowed, in the option's own type.

        Parameters
        ----------
        value : object
            An integer is taken for a float option too.
        where : str
            Owner of the option, for the message.

        Raises
        ------
        InvalidArgumentError
            If type or value are not allowed.
        """
        wanted = type(self.default)
        # A truth value is an int in Python, and no number to a user.
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            with contextlib.suppress(OverflowError):  # then it stays an int, which is refused
                value = float(value)
        # Exactly the type: a subclass could bring code of its own to a backend.
        is_bad = type(value) is not wanted or (bool(self.choices) and value not in self.choices)
        if not is_bad and isinstance(value, (int, float)):
            low, high = self.minimum, self.maximum
            in_range = (low is None or value >= low) and (high is None or value <= high)
            is_bad = not in_range  # a NaN is in no range that has a bound
        if is_bad or not isinstance(value, (bool, int, float, str)):
            meaning = f" ({self.name}: {self.help.rstrip('.')})" if self.help else ""
            raise InvalidArgumentError(
                f"the option '{self.name}' cannot have this value",
                where=where,
                expected=self.allowed,
                actual=repr(value),
                fix=f"Pass an expected value, or leave the option out{meaning}",
            )
        return value

    def parse(self, text: str, where: str = "") -> OptionValue:
        """A value written as text, as on a command line."""
        wanted = type(self.default)
        if wanted is bool:
            known = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
            return self.check(known.get(text.strip().lower(), text), where)
        try:
            return self.check(wanted(text), where)
        except ValueError as error:
            # It is a ValueError, too, and says more than one.
            if isinstance(error, InvalidArgumentError):
                raise
            # The text itself is refused, in the words for every wrong value.
            return self.check(text, where)


def default_options(
    declared: Iterable[BackendOption], scope: OptionScope
) -> dict[str, OptionValue]:
    """Defaults of the declared options of a scope, by name."""
    return {option.name: option.default for option in declared if option.scope is scope}


def check_options(
    declared: Sequence[BackendOption],
    given: Mapping[str, object],
    where: str,
    *,
    whose: str = "backend",
) -> dict[OptionScope, OptionValues]:
    """Check the options given for one backend and complete them with defaults.

    Parameters
    ----------
    where : str
        The backend's id.
    whose : str
        The owner of the options, for the message.

    Returns
    -------
    dict of OptionScope to mapping of str to value
        Every declared option, by scope.

    Raises
    ------
    InvalidArgumentError
        If the backend does not know an option, naming the nearest one that it knows; or if a value
        is not allowed.
    """
    by_name = {option.name: option for option in declared}
    for name in given:
        if name not in by_name:
            raise InvalidArgumentError(
                f"the {whose} has no option '{name}'",
                where=where,
                expected=", ".join(sorted(by_name)) or "no options: it has none",
                fix=did_you_mean(name, by_name, "Leave it out"),
            )
    values: dict[OptionScope, dict[str, OptionValue]] = {scope: {} for scope in OptionScope}
    for option in declared:
        value = given.get(option.name, option.default)
        values[option.scope][option.name] = option.check(value, where)
    # Read-only, as several backends' methods are handed the same mapping.
    return {scope: MappingProxyType(checked) for scope, checked in values.items()}
