"""The rules of the contract, in the order in which they are tried."""

from __future__ import annotations

from armpy_conformance.contract import (
    alike,
    arenas,
    buffers,
    calls,
    compiled,
    contents,
    declared,
    executing,
    gauges,
    graphs,
    imports,
    lifecycle,
    loops,
    memory,
    options,
    process,
    profiles,
    runtimes,
    sizes,
    soak,
    support,
    tensors,
    threads,
    whole_process,
)
from armpy_conformance.contract.case import Check, ContractCase

_RULES: dict[str, tuple[Check, ...]] = {
    "identity": (
        lifecycle.id_is_constant,
        lifecycle.properties_are_constant,
        declared.versions_can_be_compared,
        declared.devices_can_be,
        declared.figures_are_plausible,
        declared.free_memory_is_plausible,
        declared.diagnosis_is_lines,
        declared.capabilities_are_of_their_types,
        declared.preferences_can_be_met,
        declared.threads_get_the_same_facts,
    ),
    # Before other rules use the backend: its first use may change settings.
    "process": (
        process.settings_stay,
        process.nothing_is_printed,
        process.inputs_are_only_read,
        process.forked_children_answer_or_refuse,
        whole_process.imports_change_nothing,
        whole_process.a_whole_life_changes_nothing,
        whole_process.no_files_are_left,
        whole_process.nothing_is_printed_at_any_time,
        whole_process.idle_backends_use_no_processor,
        whole_process.the_interpreter_ends,
        declared.processes_get_the_same_facts,
    ),
    "lifecycle": (
        lifecycle.objects_can_be_made_again,
        lifecycle.load_and_unload_again_and_again,
        lifecycle.several_networks_at_once,
        lifecycle.many_networks_at_once,
        lifecycle.executions_after_a_rest_are_right,
        lifecycle.executions_stay_as_fast,
        soak.executions_go_on_for_long,
        lifecycle.several_runtimes,
    ),
    "support": (
        support.answers_have_reasons,
        support.answers_do_not_change,
        support.open_shapes_are_answered,
        support.unknown_operations_are_refused,
        declared.many_answers_are_as_many_and_in_order,
        declared.codes_fit_their_refusals,
    ),
    "threads": (
        threads.threads_share_a_network,
        threads.threads_mix_networks_and_executions,
        threads.threads_race_every_operation,
        threads.threads_load_networks,
        threads.many_threads_share_a_network,
        threads.other_threads_go_on,
    ),
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
    "alike": (
        alike.layers_differ_in_one_attribute,
        alike.runtimes_differ_in_one_option,
    ),
    "contents": (
        contents.networks_differ_in_one_element,
        contents.executions_are_right_each_time,
        contents.executions_that_differ_in_one_element,
        contents.functions_for_arrays_are_like_executions,
    ),
    "calls": (
        calls.calls_with_every_request_are_alike,
        calls.networks_of_every_priority_are_alike,
        calls.relaxed_answers_are_as_good_as_float16,
    ),
    "loops": (
        loops.state_goes_through_loops_and_choices,
        loops.loops_stop_at_their_time_out,
    ),
    "gauges": (
        gauges.every_map_is_unmapped,
        gauges.nothing_grows_from_execution_to_execution,
        gauges.nothing_grows_from_load_to_load,
        gauges.nothing_grows_from_runtime_to_runtime,
        gauges.neighbours_come_and_go,
        gauges.every_option_is_read,
        gauges.device_times_are_no_longer_than_the_clocks,
    ),
    "caller": (graphs.wrong_input, graphs.arrays_of_the_caller),
    "tensors": (
        tensors.maps_for_writing_bring_every_element,
        tensors.maps_for_reading_change_nothing,
        tensors.maps_keep_what_is_not_written,
        tensors.copies_are_like_maps,
        tensors.constants_hold_their_elements,
        tensors.networks_have_constants_of_their_own,
    ),
    "arenas": (
        arenas.tensors_share_what_others_have_left,
        arenas.executions_have_memory_of_their_own,
        arenas.idle_memory_can_be_given_back,
        arenas.arenas_can_be_made_again_and_again,
    ),
    "alignment": (
        tensors.tensors_lie_where_their_factory_declares,
        arenas.nothing_is_written_past_the_padding,
    ),
    "imports": (
        imports.answers_are_kept,
        imports.inputs_are_read_where_they_lie,
        imports.outputs_are_written_where_they_lie,
        imports.memory_is_let_go,
        imports.exports_are_the_tensors_themselves,
    ),
    "buffers": (
        buffers.elements_come_out_as_they_went_in,
        buffers.networks_read_and_write_them,
    ),
    "executions": (
        executing.bound_executions_are_like_others,
        executing.queued_executions_keep_their_order,
        executing.cancelled_completions_come_to_an_end,
        executing.failures_are_reported,
        executing.executions_stop_when_they_are_cancelled,
        executing.bound_executions_stop_as_well,
        executing.deadlines_differ_from_cancellations,
        executing.executions_after_a_stopped_one_are_right,
    ),
    "compiled": (
        compiled.kept_parts_compute_the_same,
        compiled.parts_that_cannot_be_used_are_compiled_anew,
        compiled.saved_programs_compute_the_same,
        compiled.every_attribute_comes_back,
        compiled.patterns_come_back,
    ),
    "sizes": (sizes.new_sizes_are_as_if_compiled_for_them,),
    "profiles": (
        profiles.counters_are_declared,
        profiles.events_lie_in_their_execution,
        profiles.networks_are_measured_apart,
    ),
    "runtimes": (
        runtimes.for_runtime_keeps_who_it_is,
        runtimes.for_runtime_leaves_others_alone,
        runtimes.allocators_give_and_get_back,
        runtimes.allocators_do_not_stick,
        runtimes.contexts_can_be_closed,
        runtimes.model_contexts_can_be_closed,
    ),
}

CONTRACT_CASES: tuple[ContractCase, ...] = tuple(
    ContractCase(f"contract/{area}/{rule.__name__.replace('_', '-')}", rule)
    for area, rules in _RULES.items()
    for rule in rules
)
"""Every rule; its text is the docstring of the function that checks it."""
