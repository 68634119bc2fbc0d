"""Short names of layers, which stay distinct: what all have in front is cut off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

TOGETHER = " + "
"""Between the names of layers that a backend computes as one."""

LONGEST = 48
"""Characters of a name that is still short; longer ones lose their middle."""

_MOST = 0.8
"""Share of the names that have to lie in a folder for its name to be omitted."""

_TAILS = ("StatefulPartitionedCall", "ReadVariableOp", "resource")


def short_names(names: Iterable[str], longest: int = LONGEST) -> dict[str, str]:
    """A short name for each of some names; two names never get the same one.

    Parameters
    ----------
    names : iterable of str
        Names of layers, such as ``model/block_1/conv/Relu6;model/block_1/bn/FusedBatchNormV3``:
        converters join what they have made one layer of. Layers that ran as one may be joined by
        `TOGETHER`.
    longest : int
        Approximate number of characters of a short name, and of each one in a joined name.

    Returns
    -------
    dict of str to str
        Short names by name.

    Notes
    -----
    Of a joined name, the last part stands for all. Folders that most names lie in are cut off, and
    so is, from the middle, a name that is still too long. Names that have become alike get more of
    themselves back, and a number at last. Each of the layers that ran as one has its short name.
    """
    layers = {name: name.split(TOGETHER) for name in names}
    one_by_one = _short_names(dict.fromkeys(chain.from_iterable(layers.values())), longest)
    short = {
        name: TOGETHER.join(one_by_one[part] for part in parts) for name, parts in layers.items()
    }
    _make_distinct(short, dict(zip(layers, layers, strict=True)))
    return short


def _short_names(names: Iterable[str], longest: int) -> dict[str, str]:
    """A short name for each of some names of single layers."""
    full = list(names)
    short = {name: _without(_last_part(name)) for name in full}
    common = _common_folder(list(short.values()))
    short = {name: text.removeprefix(common) or text for name, text in short.items()}
    _make_distinct(short, dict(zip(full, full, strict=True)))
    cut = {name: _cut(text, longest) for name, text in short.items()}
    _make_distinct(cut, short)
    return cut


def _last_part(name: str) -> str:
    """The last name of a joined one; converters append numbers to tell equal names apart."""
    parts = [part for part in name.split(";") if part.strip() and not part.strip().isdigit()]
    return parts[-1] if parts else name


def _without(name: str) -> str:
    """Remove the endings that converters append to a name."""
    text = name.strip().rstrip("/")
    while True:
        head, _, tail = text.rpartition("/")
        if not (head and tail.startswith(_TAILS)):
            return text or name
        text = head


def _common_folder(names: Sequence[str]) -> str:
    """The folders that most names begin with."""
    folder = ""
    while len(names) > 1:
        counts = Counter(name.split("/", 1)[0] for name in names if "/" in name)
        first, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
        if count < _MOST * len(names) or count < 2:
            break
        folder += f"{first}/"
        names = [name[len(first) + 1 :] for name in names if name.startswith(f"{first}/")]
    return folder


def _cut(name: str, longest: int) -> str:
    """A name without its middle, if it is long."""
    if len(name) <= longest:
        return name
    head = longest // 3
    return f"{name[:head]}...{name[len(name) - (longest - head - 3) :]}"


def _make_distinct(short: dict[str, str], longer: dict[str, str]) -> None:
    """Give names that have become alike their longer ones, and numbers if that is not enough."""
    counts = Counter(short.values())
    for name, text in short.items():
        if counts[text] > 1:
            short[name] = longer[name]
    counts, seen = Counter(short.values()), Counter[str]()
    used = set(short.values())
    for name, text in short.items():
        if counts[text] > 1:
            while (candidate := f"{text} #{seen[text] + 1}") in used:
                seen[text] += 1
            short[name] = candidate
            used.add(candidate)
