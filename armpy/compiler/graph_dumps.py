# SPDX-License-Identifier: Apache-2.0
"""Graph dumps: files for Graphviz of what a graph is at each stage of optimisation."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from armpy.compiler.options import OptimizerOptions
from armpy.graph import Graph
from armpy.types import BackendId

VARIABLE = "ARMPY_DUMP_GRAPHS"
"""Environment variable that names the folder, where the options name none."""

_log = logging.getLogger("armpy.compiler")
# Counting is one step under the interpreter's lock, so that threads get numbers of their own.
_numbers = count()


def dump(
    options: OptimizerOptions,
    stage: str,  # what the graph has become
    graph: Graph,
    backends: Mapping[int, BackendId] | None = None,  # backend id by layer id
) -> None:
    """Write a graph down, if the options or the environment say where.

    Files are ``<process>-<number>-<stage>.dot`` in the order in which they are written. One that
    cannot be written is a warning.

    References
    ----------
    NNAPI ``graphDump``; Arm NN ``SerializeToDot``.
    """
    folder = options.dump_graphs or os.environ.get(VARIABLE, "")
    if not folder:
        return
    from armpy.graph.dump import to_dot  # noqa: PLC0415 - few draw

    name = re.sub(r"[^A-Za-z0-9]+", "_", stage).strip("_")
    # Several processes may write to one folder.
    path = Path(folder) / f"{os.getpid()}-{next(_numbers):04}-{name}.dot"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_dot(graph, backends), encoding="utf-8")
    # A drawing is no reason for a load to fail.
    except OSError as error:
        _log.warning("the graph is not written down: %s", error)
