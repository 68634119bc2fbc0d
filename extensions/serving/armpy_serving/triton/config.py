"""``config.pbtxt``: Triton's configuration of a model, in the text form of protocol buffers.

References
----------
Triton Inference Server, model configuration (``model_config.proto``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy_serving.protocol import datatype_of

TIMEOUT_ACTIONS = ("reject", "delay")
"""Handling of requests that have waited for too long."""


class Word(str):
    """Value of an enumeration, which stands without quotes."""

    __slots__ = ()


Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TritonOptions:
    """Options of a model in a repository of Triton's."""

    name: str
    version: int = 1
    instances: int = 1  # processes that run the model side by side; they share its weights
    max_batch: int = 0
    """The most rows that requests are joined to; 0 leaves the model's shapes as they are."""
    queue_delay_us: int = 0  # how long a request waits for others, in microseconds
    max_queue: int = 0  # how many requests wait at most; 0 for any number
    timeout_us: int = 0  # how long they wait at most, in microseconds; 0 for any time
    timeout_action: str = "reject"  # handling of those that have waited so long
    own_timeout: bool = False  # whether requests may say a shorter time of their own
    labels: tuple[str, ...] = ()  # of the classes of the first output

    def check(self) -> None:
        """Check the settings that the command line cannot check.

        Raises
        ------
        InvalidArgumentError
            If an option asks for batches, and there are none.
        """
        asked = {
            "queue_delay_us": self.queue_delay_us,
            "max_queue": self.max_queue,
            "timeout_us": self.timeout_us,
            "own_timeout": self.own_timeout,
        }
        used = [name for name, value in asked.items() if value]
        if used and not self.max_batch:
            raise InvalidArgumentError(
                "only models with batches have a queue of their own",
                where=", ".join(used),
                fix="Give max_batch as well; 1 will do",
            )


LABELS_FILE = "labels.txt"
"""Name of the file with the labels, beside ``config.pbtxt``."""


def model_config(
    options: TritonOptions,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
) -> dict[str, object]:
    """Return Triton's configuration of a model.

    Parameters
    ----------
    inputs, outputs : sequence of TensorSpec
        Tensors with a first dimension for the batch, where there is one.

    Raises
    ------
    InvalidArgumentError
        If Triton cannot have such an input or output.
    """
    batched = options.max_batch > 0
    config: dict[str, object] = {
        "name": options.name,
        "backend": "python",
        "max_batch_size": options.max_batch,
        "input": [tensor_fields(spec, "input", batched) for spec in inputs],
        "output": [
            tensor_fields(spec, "output", batched)
            | ({"label_filename": LABELS_FILE} if options.labels and not index else {})
            for index, spec in enumerate(outputs)
        ],
        "instance_group": [{"kind": Word("KIND_CPU"), "count": options.instances}],
    }
    if batched:
        config["dynamic_batching"] = _batching(options)
    return config


def tensor_fields(
    spec: TensorSpec, kind: str, batched: bool, datatype: str = ""
) -> dict[str, object]:
    """An input or output in Triton's configuration.

    Parameters
    ----------
    kind : {"input", "output"}
    batched : bool
        Whether the first dimension is the batch, which Triton has by itself.
    datatype : str
        If it is another one than the tensor's own.

    Raises
    ------
    InvalidArgumentError
        If it has no name, or one that cannot be written, or if its rank is not known.
    """
    if not spec.name or not spec.name.isprintable():
        raise InvalidArgumentError(
            f"Triton cannot have an {kind} of this name",
            where=f"{kind} {spec.name!r}",
            expected="printable characters",
            fix="Name it in the model's file",
        )
    if spec.shape is None:
        raise InvalidArgumentError(
            f"the {kind}'s number of dimensions is not known, but Triton requires it",
            where=f"{kind} '{spec.name}'",
            fix="Give it a shape in the model's file, or among the shapes",
        )
    row = spec.shape[1:] if batched else spec.shape
    datatype = datatype or datatype_of(spec.data_type)
    # There are no scalars: `TritonModel` has one dimension less. A dimension of 0 is an open one.
    return {
        "name": spec.name,
        "data_type": Word(triton_type(datatype)),
        "dims": [n or -1 for n in row] or [1],
    }


def triton_type(datatype: str) -> str:
    """The word of Triton's configuration for a datatype."""
    return "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"


def _batching(options: TritonOptions) -> Fields:
    """Return how requests are joined, and how long they wait for it."""
    policy: dict[str, object] = {}
    if options.timeout_us or options.own_timeout:
        policy["timeout_action"] = Word(options.timeout_action.upper())
        policy["default_timeout_microseconds"] = options.timeout_us
        policy["allow_timeout_override"] = options.own_timeout
    if options.max_queue:
        policy["max_queue_size"] = options.max_queue
    batching: dict[str, object] = {"max_queue_delay_microseconds": options.queue_delay_us}
    return batching | ({"default_queue_policy": policy} if policy else {})


def config_text(fields: Fields, indent: str = "") -> str:
    """Fields as text: one a line, and lists as fields that come again."""
    lines = []
    for name, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                inner = config_text(item, f"{indent}  ")
                lines.append(f"{indent}{name} {{\n{inner}{indent}}}\n")
            else:
                lines.append(f"{indent}{name}: {_scalar(item)}\n")
    return "".join(lines)


def _scalar(value: object) -> str:
    """A value, quoted if it is text."""
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False)
