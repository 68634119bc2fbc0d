"""Runs one compiled model in a Python of few packages; see `prepared.py`.

Usage: ``python -I -S prepared_child.py PACKAGES FILE INPUTS OUTPUTS``. What it has found out is
printed as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec

COMPILERS_AND_PARSERS = ("numba", "llvmlite", "tflite", "flatbuffers", "onnx")


def main() -> None:
    """Load, run, write the outputs."""
    packages, path, inputs_path, outputs_path = sys.argv[1:]
    sys.path.insert(0, packages)
    present = [name for name in COMPILERS_AND_PARSERS if find_spec(name) is not None]
    if present:
        raise SystemExit(f"this Python has {', '.join(present)}")
    import numpy as np  # noqa: PLC0415 - found there alone

    import armpy  # noqa: PLC0415 - as above

    with np.load(inputs_path) as file:
        inputs = [file[name] for name in file.files]
    begin = time.process_time()
    model = armpy.load(path)
    load_ms = 1e3 * (time.process_time() - begin)
    # Names of tensors are no names of files in an archive: both sides go by position.
    named = {spec.name: inputs[n] for n, spec in enumerate(model.inputs)}
    outputs = model.run(named)
    begin = time.process_time()
    armpy.load(path)  # all imports are done now
    again_ms = 1e3 * (time.process_time() - begin)
    modules = (name for name in sys.modules if name.split(".")[0] == "armpy")
    num_modules = sum(not hasattr(sys.modules[name], "__path__") for name in modules)
    is_light = model.is_light
    np.savez(outputs_path, *[outputs[spec.name] for spec in model.outputs])
    about: dict[str, object] = {
        "is_light": is_light,
        "load_ms": load_ms,
        "again_ms": again_ms,
        "num_modules": num_modules,
    }
    if not is_light:
        placement = model.placement
        layers = [] if placement is None else placement.layers
        about["backends"] = sorted({layer.backend for layer in layers})
        refusals = placement.refusals if placement else ()
        about["refusals"] = sorted({f"{r.layer}: {r.backend}: {r.text}" for r in refusals})
    print(json.dumps(about))


if __name__ == "__main__":
    main()
