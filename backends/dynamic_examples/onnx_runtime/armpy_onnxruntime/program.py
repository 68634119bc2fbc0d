"""A compiled subgraph, and the workload that runs it in the caller's memory."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import ITensorHandle, IWorkload
from armpy_onnxruntime.engine import require


class Program:
    """An ONNX Runtime session for one subgraph.

    Parameters
    ----------
    model : bytes
        An ONNX model.
    num_threads : int
        0 is one per core.

    Notes
    -----
    ONNX Runtime packs weights and fuses layers while the session is made.
    """

    def __init__(self, model: bytes, num_threads: int) -> None:
        self.model = model
        self.num_threads = num_threads
        runtime = require("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.log_severity_level = 3  # errors; they are raised as well
        self.session = runtime.InferenceSession(
            model, sess_options=options, providers=["CPUExecutionProvider"]
        )
        self.tensor_in = runtime.OrtValue.ortvalue_from_numpy  # on the CPU it shares the memory
        self.inputs = [tensor.name for tensor in self.session.get_inputs()]
        self.outputs = [tensor.name for tensor in self.session.get_outputs()]


class ProgramWorkload(IWorkload):
    """Runs a `Program`; several threads may do so at the same time.

    Notes
    -----
    The session reads and writes the handles' memory in place: each execution binds the
    arrays anew, which takes some microseconds and leaves nothing on the workload.
    """

    def __init__(self, program: Program) -> None:
        self._program = program

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Run the session on mapped handles."""
        program = self._program
        binding = program.session.io_binding()
        for bind, names, handles, is_read in (
            (binding.bind_ortvalue_input, program.inputs, inputs, True),
            (binding.bind_ortvalue_output, program.outputs, outputs, False),
        ):
            for name, handle in zip(names, handles, strict=True):
                if handle is not None:
                    array = handle.map(read=is_read, write=not is_read)
                    bind(name, program.tensor_in(array))
        program.session.run_with_iobinding(binding)
        for handle in (*inputs, *outputs):
            if handle is not None:
                handle.unmap()
