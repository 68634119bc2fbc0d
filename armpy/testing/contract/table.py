"""The rules of the contract, in the order in which they are tried."""

from __future__ import annotations

from armpy.testing.contract import graphs, lifecycle, memory, options, support
from armpy.testing.contract.case import Check, ContractCase

_RULES: dict[str, tuple[Check, ...]] = {
    "identity": (lifecycle.id_is_constant, lifecycle.properties_are_constant),
    "lifecycle": (
        lifecycle.objects_can_be_made_again,
        lifecycle.load_and_unload_again_and_again,
        lifecycle.several_networks_at_once,
        lifecycle.several_runtimes,
    ),
    "support": (
        support.answers_have_reasons,
        support.answers_do_not_change,
        support.open_shapes_are_answered,
        support.unknown_operations_are_refused,
    ),
    "threads": (lifecycle.threads_share_a_network, lifecycle.threads_load_networks),
    "memory": (memory.manager_can_be_used_again, memory.memory_is_held_while_running),
    "options": (
        options.are_described,
        options.defaults_are_accepted,
        options.choices_are_accepted,
        options.wrong_values_are_refused,
        options.unknown_names_are_refused,
    ),
    "graphs": (
        graphs.two_layers,
        graphs.branches,
        graphs.separate_parts,
        graphs.input_as_output,
        graphs.output_twice,
        graphs.no_layers,
        graphs.another_shape_at_the_call,
    ),
    "caller": (graphs.wrong_input, graphs.arrays_of_the_caller),
}

CONTRACT_CASES: tuple[ContractCase, ...] = tuple(
    ContractCase(f"contract/{area}/{rule.__name__.replace('_', '-')}", rule)
    for area, rules in _RULES.items()
    for rule in rules
)
"""Every rule; its text is the docstring of the function that checks it."""
