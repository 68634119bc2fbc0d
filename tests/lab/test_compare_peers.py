"""A peer that ends the process is a cell of the table, and the row is complete but for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lab.benchmarks import compare_peers

PEERS = ("LiteRT", "OpenVINO", "ONNX Runtime")


def crashing(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[list[str]]:
    """Let processes in which one of these engines is measured end by a signal; what is measured."""
    measured: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        without = command[command.index("--without") + 1].split(",")
        engines = [name for name in ("armpy", *PEERS) if name not in without]
        measured.append(engines)
        if any(name in engines for name in names):
            return subprocess.CompletedProcess(command, -6, "", "malloc(): corrupted size\n")
        figures = {
            "model": "a.tflite",
            "threads": 1,
            "median_us": dict.fromkeys(engines, 2.0),
            "missing": {},
            "ratio": 1.0,
        }
        return subprocess.CompletedProcess(command, 0, json.dumps(figures), "")

    monkeypatch.setattr(subprocess, "run", run)
    return measured


@pytest.mark.parametrize(
    ("names", "cells"),
    [
        ((), ["2", "2", "2", "-", "2"]),
        (("LiteRT",), ["2", "SIGABRT", "2", "-", "2"]),
        (("LiteRT", "OpenVINO"), ["2", "SIGABRT", "SIGABRT", "-", "2"]),
        (PEERS, ["2", "SIGABRT", "SIGABRT", "-", "SIGABRT"]),
    ],
)
def test_each_engine_that_crashes_is_a_cell(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], cells: list[str]
) -> None:
    crashing(monkeypatch, *names)
    figures = compare_peers.measure_apart(Path("a.tflite"), 1, 0.1)
    assert compare_peers.row(figures)[2:-1] == cells
