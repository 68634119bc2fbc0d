"""Custom operators that plugins have registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from armpy.errors import ArmpyError, ParserError
from armpy.plugins.discovery.candidate import Failure
from armpy.plugins.hook_plugins import OWN, Answer, HookPlugins
from armpy.plugins.hooks.custom_operator import CustomConverter, CustomOperator, OperatorParts

if TYPE_CHECKING:
    from armpy.graph import Value

_HOOK = "armpy_register_custom_operators"


def custom_operators(plugins: HookPlugins) -> Mapping[str, CustomConverter]:
    """Converters of custom operators by name.

    Of two plugins the first counts; armpy's own operators are those of no other plugin.
    """
    own: dict[str, CustomConverter] = {}
    registered: dict[str, CustomConverter] = {}
    for answer in plugins.ask(_HOOK, CustomOperator, exactly=True):
        name = answer.value.name
        if answer.candidate.name == OWN[1]:
            own[name] = _guarded(answer)
        elif name in registered:
            reason = f"the custom operator '{name}' is another plugin's already"
            plugins.complain(answer.candidate, _HOOK, Failure(reason))
        else:
            registered[name] = _guarded(answer)
    return own | registered


def _guarded(answer: Answer[CustomOperator]) -> CustomConverter:
    def convert(parts: OperatorParts) -> Value | Sequence[Value]:
        try:
            return answer.value.convert(parts)
        # What armpy itself refuses in there is told in its own words.
        except ArmpyError:
            raise
        except Exception as error:
            raise ParserError(
                f"the plugin '{answer.candidate.label}' cannot convert '{answer.value.name}'",
                actual=f"{type(error).__name__}: {error}",
            ) from error

    return convert
