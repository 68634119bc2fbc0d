"""Shaped model: what a model is prepared for, and the memory that it runs in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.model.opened_model import OpenedModel

# A model that was prepared ahead of time starts without what prepares others.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from armpy.execution.arrays.imported_tensor import ImportedTensor
    from armpy.execution.calls.network_memory import NetworkMemory
    from armpy.graph import Graph
    from armpy.model.model import Model


class ShapedModel(OpenedModel):
    """Shapes that a model is prepared for, and its memory; parameters as of `Model`."""

    def import_inputs(self, memories: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends read inputs in memory that they have not allocated, where it lies.

        Parameters
        ----------
        memories : mapping of str to (ExternalMemory or ndarray)
            By name of an input. An array fits exactly, as nothing is copied.

        Returns
        -------
        dict of str to ImportedTensor
            To be given in place of arrays, for the shapes that the model is prepared for now.

        Raises
        ------
        MemoryImportError
            If the backend of an input's first reader refuses; nothing is imported then.
        InvalidArgumentError
            If there is no such input, what is given cannot be its memory, or the model was closed.

        Notes
        -----
        The first reader's backend is asked, then those of the others: who cannot import the memory,
        nor share it with who has, gets a copy in each run.

        Examples
        --------
        >>> memory = armpy.ExternalMemory.shared(4 * 3 * 224 * 224)         # doctest: +SKIP
        >>> with model.import_inputs({"image": memory})["image"] as image:  # doctest: +SKIP
        ...     scores = model.run({"image": image})["scores"]
        """
        return self._loaded.import_inputs(memories)

    def import_outputs(self, memories: Mapping[str, object]) -> dict[str, ImportedTensor]:
        """Let backends write outputs to memory that they have not allocated, where it lies.

        Parameters
        ----------
        memories : mapping of str to (ExternalMemory or ndarray)
            By name of an output.

        Returns
        -------
        dict of str to ImportedTensor
            To be given in place of arrays.

        Raises
        ------
        MemoryExportError
            If the backend that writes an output refuses; nothing is imported then.
        InvalidArgumentError
            If there is no such output, what is given cannot be its memory, or the model was closed.
        """
        return self._loaded.import_outputs(memories)

    def prepare(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        """Make all that a call needs now, so that no call compiles or plans unexpectedly.

        Parameters
        ----------
        shapes : mapping of str to tuple of int, optional
            Every input's shape, or those that differ from the default.

        Raises
        ------
        InvalidArgumentError
            If a shape does not fit what the model leaves open.

        Notes
        -----
        `RuntimeOptions.plan_cache_size` says how many shapes a model stays prepared for. Where
        shapes depend on elements, what is behind these is prepared when a call knows them.
        """
        self._loaded.prepare(self._shapes(shapes or {}))

    def resize(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """`prepare`, by the name that TensorFlow Lite has for it."""
        self.prepare(shapes)

    def warm_up(
        self,
        shapes: Mapping[str, tuple[int, ...]]
        | Sequence[Mapping[str, tuple[int, ...]]]
        | None = None,
    ) -> None:
        """Prepare, take working memory and run once, so that no call takes longer than others.

        Parameters
        ----------
        shapes : mapping of str to tuple of int, or several of them, optional
            As for `prepare`: every input's shape, or those that differ from the default.

        Raises
        ------
        InvalidArgumentError
            If a shape does not fit what the model leaves open, or more are given than the model
            stays prepared for.
        MemoryLimitError
            If a device has no memory for it; what else a run raises.

        Notes
        -----
        It is run with zeros. A model with variables is not run, as that would change them. Memory
        that is not used for 10 to 20 seconds is given back, and the next call takes it again; what
        `create_working_memory` makes stays.

        Examples
        --------
        >>> model.warm_up([{"image": (n, 224, 224, 3)} for n in (1, 8)])  # doctest: +SKIP
        """
        several = [shapes] if shapes is None or isinstance(shapes, Mapping) else [*shapes]
        most = self.runtime.options.plan_cache_size
        if len(several) > most:
            raise InvalidArgumentError(
                "the model does not stay prepared for so many shapes",
                where="warm_up",
                expected=f"at most {most} (RuntimeOptions.plan_cache_size)",
                actual=str(len(several)),
            )
        for one in several:
            self._warm_up(self._shapes(one or {}))

    def _warm_up(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Prepare for the inputs' shapes, and run once."""
        import numpy as np

        network = self._loaded
        if network.graph.variables:
            network.plan(tuple(shapes)).make_ready()
            return
        pairs = zip(network.graph.inputs, shapes, strict=True)
        network.run([np.zeros(shape, value.info.data_type.dtype) for value, shape in pairs])

    def reshape(self, shapes: Mapping[str, Sequence[int | None]]) -> Model:
        """The same network for inputs of other shapes, also where the file has fixed them.

        Parameters
        ----------
        shapes : mapping of str to sequence of (int or None)
            Every input's shape, or those that are to change; None leaves a dimension open.

        Returns
        -------
        Model
            On the same runtime, prepared anew, with variables of its own. This one stays as it is.
            The new one is closed by itself, or with the runtime that this one owns.

        Raises
        ------
        InvalidArgumentError
            If there is no such input, or a layer was written for the file's own shapes, as one is
            that reshapes to constant dimensions; the text names it.

        Notes
        -----
        Of a prepared file, and of one in the model cache whose original has gone, all that follows
        from its own shapes is constant by now: fewer of these can be reshaped.

        References
        ----------
        TFLite Interpreter::ResizeInputTensor.

        Examples
        --------
        >>> four = model.reshape({"image": (4, 224, 224, 3)})       # doctest: +SKIP
        >>> any_number = model.reshape({"image": (None, 224, 224, 3)})  # doctest: +SKIP
        """
        from armpy.execution.arrays.reshaping import with_input_shapes

        made = self._variant(with_input_shapes(self._source, shapes))
        made._made_from = self, "reshape", dict(shapes)
        return made

    def with_outputs(self, names: Sequence[str]) -> Model:
        """The same network with any of its tensors as outputs.

        Parameters
        ----------
        names : sequence of str
            Names of tensors, as the model's file has them, or of layers.

        Returns
        -------
        Model
            On the same runtime; it shares this one's variables, and is closed with it. What was
            lately asked for is kept.

        Raises
        ------
        InvalidArgumentError
            If there is no such tensor, or there are variables that cannot be shared.

        Examples
        --------
        >>> model.with_outputs(["block_3/relu"]).run({"image": image})  # doctest: +SKIP
        """
        from armpy.execution.arrays.reshaping import checked_names, with_outputs
        from armpy.model.output_subsets import Variants

        chosen = checked_names(names)

        def make() -> Model:
            graph = with_outputs(self._source, chosen)
            if any(variable.key is None for variable in graph.variables):
                raise InvalidArgumentError(
                    "the model has variables that another network cannot share",
                    where="outputs",
                    fix="Give them keys: Network.variable(..., key=...)",
                )
            made = self._variant(graph, shares_state=True)
            made._made_from = self, "with_outputs", chosen
            return made

        self._loaded  # noqa: B018 - an error once the model is closed
        with self._loading:
            self._variants = self._variants or Variants()
        return self._variants.get(chosen, make)

    def _variant(self, graph: Graph, *, shares_state: bool = False) -> Model:
        """A model of another network on the same runtime."""
        from armpy.model.model import Model

        return Model(
            graph,
            self.runtime,
            quantize_inputs=self.quantize_inputs,
            dequantize_outputs=self.dequantize_outputs,
            shares_state_with=self if shares_state and graph.variables else None,
            properties=self.properties,
            read_metadata=self._read_metadata,
        )

    def _shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The shape of each input, where some are given by name."""
        from armpy.graph.network import chosen_shape

        graph = self._loaded.graph
        names = [value.name for value in graph.inputs]
        unknown = [name for name in shapes if name not in names]
        if unknown:
            raise InvalidArgumentError(
                "the network has no such input",
                expected=", ".join(names),
                actual=", ".join(map(repr, unknown)),
            )
        chosen = []
        for value, default in zip(graph.inputs, graph.default_shapes, strict=True):
            shape = shapes.get(value.name)
            if shape is None:
                shape = value.info.known_shape if value.info.is_fully_shaped else default
            if shape is None:
                raise InvalidArgumentError(
                    "an input has no shape yet", where=f"input '{value.name}'", fix="Give it one"
                )
            chosen.append(chosen_shape(value.name, value.info.shape, shape))
        return chosen

    def create_working_memory(
        self, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> NetworkMemory:
        """Make working memory to hold, for `run`.

        Parameters
        ----------
        shapes : mapping of str to tuple of int, optional
            Every input's shape, or those that differ from the default; what the model was lately
            prepared for if left out.

        Returns
        -------
        NetworkMemory
            For one thread at a time.

        Raises
        ------
        InvalidArgumentError
            If a shape does not fit what the model leaves open, or none is known.
        MemoryLimitError
            If there is no memory left; a backend's own ArmpyErrors are raised as they are.
        """
        network = self._loaded
        return network.create_working_memory(None if shapes is None else self._shapes(shapes))

    def free_working_memory(self) -> None:
        """Give working memory that no run is using back; the next run makes it anew.

        What `create_working_memory` made stays, and so does what bound executions have.
        """
        self._loaded.free_working_memory()
