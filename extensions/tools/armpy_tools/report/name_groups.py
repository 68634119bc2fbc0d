"""Groups of layers by what their names begin with, such as the blocks of a network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from armpy.core.dataclass import dataclass

_TOKEN = re.compile(r"[^/._:]*[/._:]*")
"""A word of a name, with what separates it from the next one."""

_LARGE = 0.2
"""Share of the time from which a group is divided further."""

_MOST_GROUPS = 30


@dataclass(frozen=True, slots=True)
class NameGroup:
    """Layers whose names begin alike."""

    prefix: str  # the whole name of a single layer
    names: Sequence[str]

    def divided(self) -> list[NameGroup]:
        """The groups by the next word in which the names differ; itself if only single names do."""
        prefix = self.prefix
        while True:
            by_word: dict[str, list[str]] = {}
            for name in self.names:
                match = _TOKEN.match(name, len(prefix))
                by_word.setdefault(match[0] if match else "", []).append(name)
            if len(by_word) != 1 or "" in by_word:
                break
            prefix += next(iter(by_word))
        if all(len(names) == 1 for names in by_word.values()):
            return [self]
        return [
            NameGroup(names[0] if len(names) == 1 else prefix + word, names)
            for word, names in by_word.items()
        ]


def name_groups(sizes: Mapping[str, float]) -> list[NameGroup]:
    """Divide names into groups until none of these is large, or no further word tells them apart.

    Parameters
    ----------
    sizes : mapping of str to float
        What each name counts, such as a layer's time.

    Returns
    -------
    list of NameGroup
        The largest first.
    """

    def size(group: NameGroup) -> float:
        return sum(sizes[name] for name in group.names)

    whole = sum(sizes.values())
    groups, final = [NameGroup("", list(sizes))], list[NameGroup]()
    while groups:
        group = max(groups, key=size)
        groups.remove(group)
        parts = group.divided()
        is_large = size(group) > _LARGE * whole
        fits = len(groups) + len(final) + len(parts) <= _MOST_GROUPS
        if is_large and fits and len(parts) > 1:
            groups += parts
        else:
            final.append(group)
    return sorted(final, key=size, reverse=True)
