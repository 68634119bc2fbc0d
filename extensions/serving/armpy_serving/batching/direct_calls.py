"""Direct calls: items that their callers run themselves."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from numpy import ndarray

from armpy_serving.batching.rows import check_rows, read_item

if TYPE_CHECKING:
    from armpy import Model
    from armpy.ops.operation import Array
    from armpy_serving.batching.item import Answer
    from armpy_serving.batching.sizes import Rows


class DirectCalls:
    """Runs single items of a model in their callers' threads.

    Attributes
    ----------
    running : deque
        Items under way; changed in one step, and so without a lock.
    known_rows : tuple, optional
        Shapes of an item's rows; None where the model leaves them open.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._specs = model.inputs
        self._slots = [
            (spec.name, row := (spec.shape or ())[1:], (1, *row), spec.data_type.dtype)
            for spec in model.inputs
        ]
        self._only = self._slots[0] if len(self._slots) == 1 else None
        rows = tuple([row for _, row, *_ in self._slots])
        is_known = all(None not in row for row in rows)
        self.known_rows: Rows | None = cast("Rows", rows) if is_known else None
        # Dimensions that the shapes leave open are checked at run time.
        self._has_rows = all(spec.shape for spec in model.outputs)
        self.reset()

    def reset(self) -> None:
        """Begin with nothing under way, as a process does that was forked."""
        self.running: deque[None] = deque()
        self._is_drained = threading.Event()

    def read(self, inputs: Mapping[str, object]) -> tuple[dict[str, Array], bool]:
        """One row of each input, and whether they came with a batch dimension; as `read_item`."""
        # What most callers give is looked at without functions for each part of it.
        if type(inputs) is not dict or len(inputs) != len(self._slots):
            return self._converted(inputs)
        rows, num_with_axis = {}, 0
        for name, row, shape_of_one, dtype in self._slots:
            array = inputs.get(name)
            if type(array) is not ndarray or array.dtype != dtype:
                return self._converted(inputs)
            shape = array.shape
            if shape == shape_of_one:
                array = array[0]
                num_with_axis += 1
            elif shape != row:
                return self._converted(inputs)
            rows[name] = array
        if num_with_axis and num_with_axis != len(rows):
            return self._converted(inputs)
        return rows, num_with_axis > 0

    def _converted(self, inputs: Mapping[str, object]) -> tuple[dict[str, Array], bool]:
        """`read` of whatever is given."""
        return read_item(self._specs, inputs, self._model.quantize_inputs)

    def single(self, inputs: Mapping[str, object]) -> tuple[Mapping[str, object], bool]:
        """Inputs as the model takes a single item, and whether outputs keep the batch dimension."""
        if self._only is not None and type(inputs) is dict and len(inputs) == 1:
            # As the model takes it: most items of most models are.
            name, _, shape_of_one, dtype = self._only
            array = inputs.get(name)
            if type(array) is ndarray and array.shape == shape_of_one and array.dtype == dtype:
                return inputs, True
        rows, keeps_axis = self.read(inputs)
        return {name: array[None] for name, array in rows.items()}, keeps_axis

    def run(
        self, given: Mapping[str, object], keeps_axis: bool, deadline_s: float | None = None
    ) -> Answer:
        """Run one item, as `single` gives it.

        Parameters
        ----------
        deadline_s : float, optional
            Time limit.
        """
        outputs = self._model.run(given, None, None, None, deadline_s)
        if not self._has_rows:
            check_rows(outputs, 1)
        return outputs if keeps_axis else {name: array[0] for name, array in outputs.items()}

    def notify_drained(self) -> None:
        """Wake the threads that wait for the last run, if it is over."""
        if not self.running:
            self._is_drained.set()

    def drain(self) -> None:
        """Wait until nothing is under way, once nothing more begins."""
        while self.running:
            self._is_drained.clear()
            if self.running:  # the last one may have ended between the two
                self._is_drained.wait()
