"""The quick dataclasses do what the standard ones do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
import threading
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from armpy.records import dataclass


class Rule(ABC):
    __slots__ = ()
    kinds: ClassVar[int] = 3

    @abstractmethod
    def apply(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Quick(Rule):
    kinds: ClassVar[int] = 4
    first: int
    second: tuple[int, ...] = (1, 2)
    third: list[int] = dataclasses.field(default_factory=list, hash=False)
    fourth: str = dataclasses.field(default="x", compare=False, repr=False)

    def apply(self) -> int:
        return self.first


@dataclasses.dataclass(frozen=True, slots=True)
class Standard(Rule):
    kinds: ClassVar[int] = 4
    first: int
    second: tuple[int, ...] = (1, 2)
    third: list[int] = dataclasses.field(default_factory=list, hash=False)
    fourth: str = dataclasses.field(default="x", compare=False, repr=False)

    def apply(self) -> int:
        return self.first


@dataclass
class Loose:
    first: int
    second: int = dataclasses.field(default=4)
    third: int = 5

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("negative")


BOTH = pytest.mark.parametrize("kind", [Quick, Standard])


@BOTH
def test_objects_hold_their_fields(kind: type[Quick]) -> None:
    item = kind(7, third=[2])
    assert (item.first, item.second, item.third, item.fourth) == (7, (1, 2), [2], "x")
    assert item.kinds == kind.kinds == 4
    assert kind(7).third is not kind(7).third
    assert not hasattr(item, "__dict__")


@BOTH
def test_text_and_comparison(kind: type[Quick]) -> None:
    assert repr(kind(1)) == f"{kind.__name__}(first=1, second=(1, 2), third=[])"
    assert kind(1, fourth="a") == kind(1, fourth="b") != kind(2)
    assert hash(kind(1)) == hash(kind(1, (1, 2), [3]))
    other: object = (1, (1, 2), [], "x")
    assert kind(1) != other


@BOTH
def test_nothing_changes(kind: type[Quick]) -> None:
    item = kind(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        item.first = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del item.first
    assert item.first == 1


@BOTH
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda i: pickle.loads(pickle.dumps(i))]
)
def test_copies_are_equal(kind: type[Quick], again: Callable[[Quick], Quick]) -> None:
    item = kind(1, third=[5])
    assert again(item) == item
    assert again(item).fourth == "x"


@BOTH
def test_the_standard_functions_take_them(kind: type[Quick]) -> None:
    assert dataclasses.is_dataclass(kind)
    assert [f.name for f in dataclasses.fields(kind)] == ["first", "second", "third", "fourth"]
    assert dataclasses.replace(kind(1), second=(4,)) == kind(1, (4,))
    assert dataclasses.asdict(kind(1)) == {"first": 1, "second": (1, 2), "third": [], "fourth": "x"}
    match kind(3):
        case kind(first):
            assert first == 3


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is of Python 3.13")
@BOTH
def test_copies_with_changes(kind: type[Quick]) -> None:
    assert copy.replace(kind(1), first=2) == kind(2)  # type: ignore[attr-defined]


def test_the_signature_is_that_of_the_standard_decorator() -> None:
    assert str(inspect.signature(Quick)) == str(inspect.signature(Standard))


@BOTH
@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5)])
def test_arguments_are_checked(kind: type[Quick], arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="__init__"):
        kind(*arguments)


@pytest.mark.parametrize("decorate", [dataclass, dataclasses.dataclass])
def test_subclasses_by_either_decorator_have_all_fields(decorate: Callable[..., Any]) -> None:
    class Fields(Quick):
        fifth: int = 5

    longer: Any = decorate(frozen=True, slots=True)(Fields)

    assert repr(longer(1)).endswith("Fields(first=1, second=(1, 2), third=[], fifth=5)")
    assert longer.__slots__ == ("fifth",)
    assert longer(1, fifth=6) == dataclasses.replace(longer(1), fifth=6) != longer(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        longer(1).first = 2


def test_a_plain_subclass_of_a_frozen_one_may_have_more() -> None:
    class More(Quick):
        pass

    item = More(1)
    item.other = 5  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        item.first = 2  # type: ignore[misc]
    assert (item.first, item.other) == (1, 5)  # type: ignore[attr-defined]


def test_methods_that_a_class_has_stay() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:  # noqa: PLW1641 - the decorator gives it a hash
        first: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    assert (repr(Own(1)), Own(1), hash(Own(1))) == ("own", Own(2), hash((1,)))


def test_identity_can_be_what_counts() -> None:
    @dataclass(frozen=True, eq=False)
    class Thing:
        first: int

    item = Thing(1)
    assert item != Thing(1)
    assert len({item, Thing(1)}) == 2


def test_what_can_change_has_no_hash_and_plain_defaults() -> None:
    item = Loose(1)
    item.first = 2
    assert item == Loose(2, 4, 5)
    assert (Loose.second, Loose.third) == (4, 5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(item)
    with pytest.raises(ValueError, match="negative"):
        Loose(-1)


def test_abstract_methods_still_have_to_be_there() -> None:
    @dataclass(frozen=True, slots=True)
    class Unfinished(Rule):
        first: int

    with pytest.raises(TypeError, match="abstract"):
        Unfinished(1)  # type: ignore[abstract]


def test_defaults_that_objects_would_share_are_refused() -> None:
    with pytest.raises(ValueError, match="mutable default"):

        @dataclass
        class Shared:
            first: list[int] = []  # noqa: RUF012 - that is the point


DECORATORS = pytest.mark.parametrize("decorate", [dataclass, dataclasses.dataclass])


@DECORATORS
@pytest.mark.parametrize("frozen", [False, True])
def test_fields_may_have_any_name(decorate: Callable[..., Any], frozen: bool) -> None:
    class Fields:
        self: int
        set_field: int = 1
        factory: list[int] = dataclasses.field(default_factory=list)
        make_factory: int = 2
        default_set_field: int = 3

    kind = decorate(frozen=frozen)(Fields)
    assert dataclasses.astuple(kind(0)) == (0, 1, [], 2, 3)
    assert dataclasses.astuple(kind(5, 6, [7], 8, 9)) == (5, 6, [7], 8, 9)
    assert kind(0, factory=5).factory == 5


@DECORATORS
def test_a_field_without_default_comes_before_those_with_one(decorate: Callable[..., Any]) -> None:
    class Own:
        first: int = 1
        second: int

    class Inherited(Quick):
        fifth: int

    for kind in (Own, Inherited):
        with pytest.raises(TypeError, match="default"):
            decorate(frozen=True)(kind)


@DECORATORS
def test_frozen_and_other_classes_do_not_mix(decorate: Callable[..., Any]) -> None:
    class Thawed(Quick):
        fifth: int = 5

    class Frozen(Loose):
        fourth: int = 5

    with pytest.raises(TypeError, match="frozen"):
        decorate(Thawed)
    with pytest.raises(TypeError, match="frozen"):
        decorate(frozen=True)(Frozen)


def test_fields_that_cannot_be_given_in_order_are_refused() -> None:
    class Made:
        first: int = dataclasses.field(init=False, default=1)

    class Named:
        first: int = dataclasses.field(kw_only=True)

    for kind in (Made, Named):
        with pytest.raises(TypeError, match="the field 'first' has to be an argument in order"):
            dataclass(kind)


@BOTH
def test_types_of_arguments_can_be_asked_for(kind: type[Quick]) -> None:
    hints = typing.get_type_hints(kind.__init__)
    assert hints["second"] == tuple[int, ...]
    assert hints["return"] is type(None)


def test_a_single_field_is_compared_like_several() -> None:
    @dataclass(frozen=True)
    class One:
        first: object

    @dataclass(frozen=True)
    class Two:
        first: object
        second: int = 0

    nan = float("nan")
    assert One(nan) == One(nan)
    assert Two(nan) == Two(nan)
    assert hash(One(3)) == hash((3,))


def test_first_objects_may_be_made_side_by_side() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        first: int

    made: list[Fresh] = []
    threads = [threading.Thread(target=lambda: made.append(Fresh(1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [Fresh(1)] * 8
