"""Compiles a region to a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from armpy.graph import Layer, SubgraphView, Value
from armpy_numba_acc.lowering.byte_lines import lower_as_lines
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.passes.bfloat16 import find_bfloat16
from armpy_numba_acc.passes.byte_chains import find_byte_chains
from armpy_numba_acc.passes.byte_means import ByteMean, find_byte_means, lower_byte_mean
from armpy_numba_acc.passes.byte_tables import (
    ByteFunction,
    find_byte_functions,
    lower_byte_function,
)
from armpy_numba_acc.passes.chains import ElementwiseChain, find_chains, lower_chain
from armpy_numba_acc.passes.fusion import find_fusions
from armpy_numba_acc.passes.grouping import with_depthwise
from armpy_numba_acc.passes.images import Images, images_of, volumes_of
from armpy_numba_acc.passes.joining import find_joins
from armpy_numba_acc.passes.late_products import with_late_products
from armpy_numba_acc.passes.pad_folding import with_folded_padding
from armpy_numba_acc.passes.rewriting import rewritten
from armpy_numba_acc.passes.views import find_views
from armpy_numba_acc.passes.zero_sized import without_zero_sized
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Arrangement, Emitter
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.program.registry import lower

MakeEmitter: TypeAlias = Callable[[Arrangement], Emitter]


def lower_region(
    view: SubgraphView,
    isa: Isa,
    num_threads: int = 1,
    choices: Choices | None = None,
) -> Program:
    """Lower every layer of a region.

    Parameters
    ----------
    view
        Whose layers `armpy_numba_acc.passes.support.support` has taken.
    num_threads
        Most threads that will run the program.
    choices
        Decides where there are several ways; by the built-in figures of a processor that has the
        instruction set if left out.
    """
    view = prepared(view)
    choices = choices or Choices(isa, typical(isa))
    num_threads = _worthwhile_threads(choices, view, num_threads)

    def make_emitter(arrangement: Arrangement) -> Emitter:
        emitter = Emitter(view, choices, num_threads, arrangement, lower_nested)
        if images is not None:
            _lower_images(emitter, images)
        return emitter

    images = images_of(view, choices.model)
    return lower_layers(view if images is None else images.rest, choices, make_emitter).finish()


def _lower_images(emit: Emitter, images: Images) -> None:
    """Add the commands of the layers that are run image by image."""
    steps = {
        emit.batch(value): value_of_one.info.size_bytes
        for value_of_one, value in images.inputs.items()
        if value_of_one is not value
    }
    steps |= {
        emit.target(value): value_of_one.info.size_bytes
        for value_of_one, value in images.outputs.items()
    }
    first, num_buffers = emit.num_commands, emit.num_buffers
    emitter = lower_layers(
        images.one,
        emit.choices,
        lambda arrangement: emit.of_one_image(
            images.one, images.inputs, images.outputs, arrangement
        ),
    )
    for value_of_one, value in images.outputs.items():
        source, wanted = emitter.source_as_kept(value_of_one), emit.target(value)
        if (source.root, source.start) != (wanted.root, wanted.start):
            size = value_of_one.info.size_bytes
            emitter(
                calls.Copy(source, wanted.part(0, size), size),
                f"copy {value_of_one.name}",
                part="copy",
            )
    emit.repeat(first, emit.scratch_since(num_buffers), steps, images.count)


def lower_nested(
    emit: Emitter, view: SubgraphView, places: Mapping[Value, Buffer], inside: str
) -> Emitter:
    """Add the commands of a graph that a layer runs; see `LowerGraph`."""
    view = prepared(view)
    return lower_layers(
        view, emit.choices, lambda arrangement: emit.nested(view, places, inside, arrangement)
    )


def lower_layers(view: SubgraphView, choices: Choices, make_emitter: MakeEmitter) -> Emitter:
    """Add the commands of every layer.

    Parameters
    ----------
    view
        As `prepared` gives it.
    make_emitter : callable
        Makes the list that the commands are added to.
    """
    fusions, views = find_fusions(view), find_views(view)
    together = {layer: fusion.absorbed for layer, fusion in fusions.items()}
    together.update(views.absorbed)
    # What a layer absorbs is computed with it; a chain, where its last layer stands.
    absorbed = {layer for layers in together.values() for layer in layers}
    byte_functions = find_byte_functions(view, absorbed)
    byte_means = find_byte_means(view, absorbed)
    groups: list[ByteFunction | ByteMean | ElementwiseChain]
    groups = [*byte_functions.values(), *byte_means.values()]
    chains = find_chains(view, absorbed | _computed_inside(view, groups))
    joined = absorbed | _computed_inside(view, [*groups, *chains.values()])
    bfloat16 = find_bfloat16(view, choices, fusions, chains) if choices.isa.is_relaxed else ()
    emitter = make_emitter(Arrangement(fusions, bfloat16, find_joins(view), views))
    byte_chains = find_byte_chains(view, joined)
    joined.update(layer for chain in byte_chains.values() for layer in chain)
    for layer in view.layers:
        emitter.counter.begin(layer)
        if layer in chains:
            emitter.begin(chains[layer].layers)
            lower_chain(emitter, chains[layer])
        elif layer in byte_functions:
            emitter.begin(byte_functions[layer].absorbed)
            lower_byte_function(emitter, byte_functions[layer])
        elif layer in byte_means:
            emitter.begin(byte_means[layer].layers)
            lower_byte_mean(emitter, byte_means[layer])
        elif layer in byte_chains:
            _lower_byte_chain(emitter, byte_chains[layer])
        elif layer not in joined:
            layers = layer, *together.get(layer, ())
            emitter.begin(layers)
            if (volumes := volumes_of(layers)) is not None:
                _lower_images(emitter, volumes)
            else:
                lower(emitter, layer)
    return emitter


def _computed_inside(
    view: SubgraphView, groups: Sequence[ByteFunction | ByteMean | ElementwiseChain]
) -> set[Layer]:
    """Layers that are only needed where others are computed with them."""
    groups_of = {layer: [group] for group in groups for layer in group.absorbed}
    members = {layer for group in groups for layer in group.layers}.difference(groups_of)
    outside = set(view.outputs)
    # Readers first: what only layers inside read is inside as well.
    for layer in reversed([layer for layer in view.layers if layer in members]):
        readers = view.consumers.get(layer.output, ())
        of_readers = [group for reader in readers for group in groups_of.get(reader, ())]
        if (
            layer.output not in outside
            and groups_of.keys() >= set(readers)
            and all(layer in group.layers for group in of_readers)
        ):
            groups_of[layer] = of_readers
    return set(groups_of)


def _lower_byte_chain(emitter: Emitter, chain: Sequence[Layer]) -> None:
    """Add one command for all layers, or one for each where there is none for all."""
    emitter.begin(chain)
    if lower_as_lines(emitter, chain):
        return
    for layer in chain:
        emitter.begin((layer,))
        lower(emitter, layer)


def prepared(view: SubgraphView) -> SubgraphView:
    """A region with the layers that are lowered; the same if it is one of those already."""
    legal = with_depthwise(rewritten(without_zero_sized(view)))
    return with_late_products(with_folded_padding(legal))


def _worthwhile_threads(choices: Choices, view: SubgraphView, num_threads: int) -> int:
    """All threads that there may be, unless one alone was measured to be faster."""
    options = list(dict.fromkeys([(num_threads,), (1,)]))
    shape = (num_threads, len(view.layers))
    (chosen,) = choices.choose("threads", shape, options, lambda option: -option[0])
    return chosen
