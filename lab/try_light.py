"""Runs the compiled digits without a compiler: `python lab/try_light.py MODEL.armpy`.

Needs an environment with armpy, NumPy, pluggy and packaging alone.
"""

from __future__ import annotations

import argparse
import importlib.util

import numpy as np

import armpy


def main(path: str) -> None:
    """Run the model on NumbaAcc's code, and check that nothing else could have computed it."""
    compilers = [name for name in ("numba", "llvmlite") if importlib.util.find_spec(name)]
    if compilers:
        raise SystemExit(f"{' and '.join(compilers)} are installed, which shows nothing")
    with armpy.load(path) as model:
        scores = np.asarray(model(np.zeros((1, 16, 16, 1), np.int8)))
        layers = model.placement.layers_by_backend if model.placement else {}
    if scores.shape != (1, 10) or [*layers] != ["NumbaAcc"]:
        raise SystemExit(f"scores of shape {scores.shape}, layers on {', '.join(layers)}")
    print(f"{sum(layers.values())} layers on NumbaAcc, without a compiler")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("model", metavar="MODEL.armpy")
    main(parser.parse_args().model)
