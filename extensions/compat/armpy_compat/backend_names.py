"""Ids of backends that Arm NN and armpy name differently."""

from __future__ import annotations

_ARMPY_IDS = {"CpuAcc": "NumbaAcc"}
_ARM_NN_IDS = {armpy_id: arm_nn_id for arm_nn_id, armpy_id in _ARMPY_IDS.items()}


def armpy_id(backend: str) -> str:
    """Return armpy's id of a backend: NumbaAcc for CpuAcc, the same for others."""
    return _ARMPY_IDS.get(backend, backend)


def arm_nn_id(backend: str) -> str:
    """Return Arm NN's id of a backend: CpuAcc for NumbaAcc, the same for others."""
    return _ARM_NN_IDS.get(backend, backend)
