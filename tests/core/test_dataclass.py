"""Dataclasses whose methods are compiled at their first use are those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import pickle
import sys
import threading
import types
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import pytest

from armpy.core import dataclass as ours

FORMS = [
    dict(zip(("frozen", "slots", "eq", "repr"), values, strict=True))
    for values in itertools.product((False, True), repeat=4)
]

Decorator = Callable[..., Any]  # Any: classes that are made alike


def _point(decorator: Decorator, form: dict[str, bool]) -> Any:
    @decorator(**form)
    class Point:
        """A place."""

        kind: ClassVar[str] = "point"
        x: int
        y: int = 2
        names: list[str] = dataclasses.field(default_factory=list, compare=False)
        weight: float = dataclasses.field(default=1.0, repr=False)
        sum: int = dataclasses.field(init=False, default=0)
        seen: set[int] = dataclasses.field(init=False, default_factory=set, compare=False)
        is_far: bool = dataclasses.field(default=False, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.x + self.y)

    return Point


def _derived(decorator: Decorator, form: dict[str, bool], base: Any) -> Any:
    @decorator(**form)
    class Derived(base):  # type: ignore[misc]  # of whatever the decorator makes
        """A place of a kind."""

        z: int = 3
        y: int = 5

    return Derived


@pytest.fixture(params=FORMS, ids=lambda form: " ".join(name for name in form if form[name]))
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Classes of armpy's and of the standard library's decorator."""
    form: dict[str, bool] = request.param
    mine, theirs = (_point(one, form) for one in (ours.dataclass, dataclasses.dataclass))
    return mine, theirs


def _facts(kind: Any, *arguments: Any, **named: Any) -> dict[str, object]:
    """What can be observed of a class and its objects."""
    one, same, other = kind(*arguments, **named), kind(*arguments, **named), kind(7, 8, ["n"])
    facts: dict[str, object] = {
        "signature": str(inspect.signature(kind)),
        "doc": kind.__doc__,
        "fields": [(f.name, f.type, f.init, f.compare) for f in dataclasses.fields(kind)],
        "match": kind.__match_args__,
        "slots": getattr(kind, "__slots__", None),
        "frozen": kind.__dataclass_params__.frozen,
        "equal": (one == same, one == other, one != same, one == arguments),
        "hashable": isinstance(one, Hashable),
        "values": dataclasses.asdict(one),
        "replaced": dataclasses.asdict(dataclasses.replace(one, x=9)),
        "copied": dataclasses.asdict(copy.copy(one)),
        "deep": dataclasses.asdict(copy.deepcopy(one)),
        "new lists": one.names is not same.names,
    }
    facts["shown"] = repr(one) if "__repr__" in vars(kind) else "as an object"
    equal_objects_hash = kind.__hash__ not in (None, object.__hash__)
    facts["hash"] = hash(one) == hash(same) if equal_objects_hash else "of the object or none"
    facts["changed"] = [_changed(setattr, one, "x", 5), _changed(delattr, one, "y")]
    return facts


def _changed(change: Callable[..., None], *arguments: Any) -> str:
    """Change an object, or say why it does not let itself be changed."""
    try:
        change(*arguments)
    except dataclasses.FrozenInstanceError as error:
        return str(error)
    return "changed"


def test_classes_are_those_of_the_standard_library(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    assert _facts(mine, 1) == _facts(theirs, 1)
    assert _facts(mine, 1, 3, ["a"], 0.5, is_far=True) == _facts(
        theirs, 1, 3, ["a"], 0.5, is_far=True
    )


@pytest.mark.parametrize("call", [{}, {"x": 1, "none": 2}, {"y": 2}])
def test_calls_that_do_not_fit_are_refused_alike(
    pair: tuple[Any, Any], call: dict[str, int]
) -> None:
    texts = []
    for kind in pair:
        with pytest.raises(TypeError) as error:
            kind(**call)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("form", FORMS)
def test_dataclasses_derive_from_each_other(form: dict[str, bool]) -> None:
    both = (ours.dataclass, dataclasses.dataclass)
    expected = _derived(dataclasses.dataclass, form, _point(dataclasses.dataclass, form))
    for decorator, of_base in itertools.product(both, both):
        kind = _derived(decorator, form, _point(of_base, form))
        assert _facts(kind, 1) == _facts(expected, 1)


@ours.dataclass(frozen=True, slots=True)
class Kept:
    """Can be pickled, as it is a class of a module."""

    number: int
    name: str = "none"


def test_frozen_objects_with_slots_are_pickled() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Kept(3, "x"), protocol)) == Kept(3, "x")


def test_methods_that_a_class_has_stay() -> None:
    @ours.dataclass(frozen=True)
    class Odd:
        number: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Odd) and self.number % 2 == other.number % 2

        def __hash__(self) -> int:
            return self.number % 2

        def __repr__(self) -> str:
            return "odd" if self.number % 2 else "even"

    assert (Odd(1), hash(Odd(3)), repr(Odd(2))) == (Odd(5), 1, "even")


def test_an_object_that_contains_itself_is_shown() -> None:
    point = _point(ours.dataclass, {})(1)
    point.names.append(point)
    assert "names=[...]" in repr(point)


def test_methods_are_compiled_at_their_first_use() -> None:
    kind = _point(ours.dataclass, {"frozen": True, "slots": True})
    names = ("__init__", "__repr__", "__eq__", "__hash__")
    compiled = [name for name in names if inspect.isfunction(vars(kind)[name])]
    assert compiled == []
    first = kind(1)
    assert [name for name in names if inspect.isfunction(vars(kind)[name])] == ["__init__"]
    assert (first == kind(1), inspect.isfunction(vars(kind)["__eq__"])) == (True, True)


def test_threads_may_meet_at_the_first_use() -> None:
    for _ in range(20):
        kind = _point(ours.dataclass, {"frozen": True, "slots": True})
        start, made = threading.Barrier(4), list[Any]()

        def make(kind: Any = kind, start: threading.Barrier = start, made: Any = made) -> None:
            start.wait()
            made.append(kind(1))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [kind(1)] * 4


BOTH = pytest.mark.parametrize("decorator", [ours.dataclass, dataclasses.dataclass])


@BOTH
def test_fields_may_be_left_out_of_the_hash(decorator: Decorator) -> None:
    @decorator(frozen=True)
    class Event:
        number: int
        details: dict[str, int] = dataclasses.field(default_factory=dict, hash=False)
        name: str = dataclasses.field(default="", compare=False, hash=True)

    event: Any = Event
    assert hash(event(1)) == hash(event(1, {"a": 2})) != hash(event(1, {}, "b"))
    assert event(1) != event(1, {"a": 2})


@BOTH
def test_a_class_keeps_its_own_way_to_begin_and_to_be_pickled(decorator: Decorator) -> None:
    @decorator(frozen=True, slots=True)
    class Own:
        number: int

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "number", len(text))

        def __getstate__(self) -> str:
            return "x" * self.number

        def __setstate__(self, state: str) -> None:
            object.__setattr__(self, "number", 10 * len(state))

    assert copy.copy(Own("abc")).number == 30


@BOTH
@pytest.mark.parametrize("is_frozen", [False, True])
def test_frozen_and_other_dataclasses_do_not_mix(decorator: Decorator, is_frozen: bool) -> None:
    for base in (ours.dataclass, dataclasses.dataclass):
        point = _point(base, {"frozen": not is_frozen})
        with pytest.raises(TypeError, match="frozen"):
            _derived(decorator, {"frozen": is_frozen}, point)


@BOTH
def test_a_frozen_class_cannot_have_its_own_way_to_set_attributes(decorator: Decorator) -> None:
    class Plain:
        number: int

        def __setattr__(self, name: str, value: object) -> None:
            pass

    with pytest.raises(TypeError, match="__setattr__"):
        decorator(frozen=True)(Plain)


@BOTH
def test_subclasses_that_are_no_dataclasses_have_attributes_of_their_own(
    decorator: Decorator,
) -> None:
    class Marked(_point(decorator, {"frozen": True})):  # type: ignore[misc]  # as above
        """A place with a mark."""

    marked = Marked(1)
    marked.mark = "here"
    del marked.mark
    with pytest.raises(dataclasses.FrozenInstanceError):
        marked.x = 2


def test_methods_are_written_where_the_module_is_no_longer_known() -> None:
    module = types.ModuleType("forgotten_module")
    sys.modules[module.__name__] = module
    text = "from armpy.core.dataclass import dataclass\n@dataclass\nclass A:\n    x: int\n"
    exec(text, vars(module))
    del sys.modules[module.__name__]
    assert module.A(1) == module.A(1)
