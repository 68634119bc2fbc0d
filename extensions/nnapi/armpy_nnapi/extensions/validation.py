"""Validation of vendor extensions in models: prefixes, names, types."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.backend.extension import LARGEST_EXTENSION_ID, check_extension_name
from armpy.errors import InvalidArgumentError
from armpy_nnapi.codes import EXTENSION_PREFIX_SHIFT, MAX_EXTENSION_PREFIX, is_extension
from armpy_nnapi.description.model_description import (
    ExtensionTypeInformation,
    ModelDescription,
    Operand,
    Subgraph,
)
from armpy_nnapi.results import as_bad_data, require_data


def check_extensions(description: ModelDescription) -> None:
    """Check a model's extensions, and that its codes are theirs.

    Raises
    ------
    NnapiError
        BAD_DATA if a prefix cannot be one, a name is not an extension's or there twice, a code's
        prefix has no name, or what is said of a type contradicts its code or is said otherwise
        elsewhere in the model.

    References
    ----------
    NNAPI HAL 1.2 ``Model::extensionNameToPrefix``, ``Operand::ExtraParams``.
    """
    _check_names(description.extensions)
    # One for all graphs, as a type means the same in each of them.
    facts: dict[int, ExtensionTypeInformation] = {}
    _check_graph(description.main, "", description.extensions, facts)
    for number, graph in enumerate(description.referenced):
        _check_graph(graph, f"referenced model {number} / ", description.extensions, facts)


def _check_names(names: Mapping[int, str]) -> None:
    """Check prefixes and names of extensions."""
    prefixes: dict[str, int] = {}
    for prefix, name in names.items():
        # A bool is an int to Python, and True would be prefix 1.
        is_number = isinstance(prefix, int) and not isinstance(prefix, bool)
        require_data(
            is_number and 0 < prefix <= MAX_EXTENSION_PREFIX,
            "this cannot be the prefix of an extension",
            where=f"extension {name!r}",
            expected=f"1 to {MAX_EXTENSION_PREFIX}; 0 is NNAPI's own",
            actual=repr(prefix),
        )
        try:
            check_extension_name(name)
        except InvalidArgumentError as error:
            raise as_bad_data(error) from error
        require_data(
            name not in prefixes,
            "an extension has two prefixes",
            where=f"extension {name!r}",
            actual=f"{prefixes.get(name)} and {prefix}",
        )
        prefixes[name] = prefix


def _check_graph(
    graph: Subgraph,
    where: str,
    names: Mapping[int, str],
    facts: dict[int, ExtensionTypeInformation],
) -> None:
    for index, operand in enumerate(graph.operands):
        place = f"{where}operand {index}"
        _check_prefix(operand.type, names, place)
        _check_type(operand, place, facts)
    for number, node in enumerate(graph.operations):
        _check_prefix(node.type, names, f"{where}operation {number}")


def _check_prefix(code: int, names: Mapping[int, str], where: str) -> None:
    """Check that the prefix of an extension's code has a name."""
    prefix = code >> EXTENSION_PREFIX_SHIFT
    require_data(
        not is_extension(code) or prefix in names,
        "the prefix of its code has no name",
        where=where,
        expected=f"one of {sorted(names)} among the model's extensions",
        actual=f"{prefix} of {code:#x}",
    )


def _check_type(operand: Operand, where: str, facts: dict[int, ExtensionTypeInformation]) -> None:
    """Check the description of an operand's type."""
    said = operand.extension_type
    if said is None:
        return  # that nothing is known of a type is found with the operand
    require_data(
        is_extension(operand.type),
        "it is said of which extension's type it is, but it is of none's",
        where=where,
        actual=operand.type_name,
    )
    require_data(
        said.type == operand.type & LARGEST_EXTENSION_ID,
        "the number of its type contradicts its code",
        where=where,
        expected=f"{operand.type & LARGEST_EXTENSION_ID} of {operand.type:#x}",
        actual=str(said.type),
    )
    # The description repeats it in every operand; the first one counts.
    first = facts.setdefault(operand.type, said)
    require_data(
        said == first,
        "its type is something else elsewhere in the model",
        where=where,
        expected=str(first),
        actual=str(said),
    )
