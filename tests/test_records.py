"""Records are dataclasses to whoever asks, without being generated."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import pytest

from armpy.core.records import record, set_field
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    x: int
    y: tuple[int, ...] = (1,)


@record
class Slotted:
    __slots__ = ("x", "y")

    x: int
    y: tuple[int, ...]

    def __init__(self, x: int, y: tuple[int, ...] = (1,)) -> None:
        set_field(self, "x", x)
        set_field(self, "y", y)


@record
class Short:
    x: int
    y: tuple[int, ...] = (1,)


KINDS = pytest.mark.parametrize("kind", [Plain, Slotted, Short])


@KINDS
def test_a_record_is_made_compared_and_shown_as_a_dataclass_is(kind: type[Plain]) -> None:
    one = kind(2)
    assert (one.x, one.y) == (2, (1,))
    assert one == kind(2, (1,)) == kind(x=2)
    assert one != kind(3)
    assert len({one, kind(2), kind(3)}) == 2
    assert repr(one) == f"{kind.__name__}(x=2, y=(1,))"
    assert kind.__match_args__ == ("x", "y")


@KINDS
def test_a_record_cannot_be_changed(kind: type[Plain]) -> None:
    one = kind(2)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 3  # type: ignore[misc]  # that is the test
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.x
    assert one.x == 2


@KINDS
@pytest.mark.parametrize(
    "given", [((), {}), ((1, (2,), 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2})]
)
def test_a_record_takes_its_fields_alone_and_each_once(
    kind: type[Plain], given: tuple[tuple[int, ...], dict[str, int]]
) -> None:
    with pytest.raises(TypeError):
        kind(*given[0], **given[1])  # type: ignore[arg-type]  # that is the test


@KINDS
def test_what_knows_dataclasses_takes_a_record_for_one(kind: type[Plain]) -> None:
    one = kind(2, (3, 4))
    assert dataclasses.is_dataclass(one)
    fields = dataclasses.fields(one)
    assert [(f.name, f.type) for f in fields] == [("x", "int"), ("y", "tuple[int, ...]")]
    assert [f.default for f in fields] == [dataclasses.MISSING, (1,)]
    assert dataclasses.replace(one, x=5) == kind(5, (3, 4))
    assert dataclasses.asdict(one) == {"x": 2, "y": (3, 4)}
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == copy.deepcopy(one) == one

    @dataclasses.dataclass(frozen=True)
    class Longer(kind):  # type: ignore[misc,valid-type]  # whatever the kind is
        z: int = 0

    assert Longer(1, (2,), 3).z == 3
    assert [f.name for f in dataclasses.fields(Longer)] == ["x", "y", "z"]


def test_signatures_are_those_that_dataclasses_have() -> None:
    assert inspect.signature(Slotted.__init__) == inspect.signature(Plain.__init__)


def test_what_the_tensor_descriptions_hold_is_checked_when_they_are_copied_as_well() -> None:
    info = TensorInfo((1, None), DataType.QASYMM_S8, Quantization.per_tensor(0.5, 3))
    assert pickle.loads(pickle.dumps(info)) == copy.deepcopy(info) == info
    assert dataclasses.replace(info, shape=(2, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match="negative"):
        dataclasses.replace(info, shape=(-1,))
