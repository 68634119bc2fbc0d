"""The list of pages at the side of each page, and the pages that a search finds.

The theme makes the list from the tables of contents of all pages, with every heading and class in
them, anew for each page: half of the time of a build. Here it comes from the pages' titles, and
sections that lead to many pages, such as the decisions, are listed on their own pages alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from html import escape
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

NOT_SEARCHED = ("docs/decisions/*", "CHANGELOG")
"""Pages about the past, which a search leaves out."""

_OPEN_LEVELS = 2
"""Levels that every page lists; those below are listed where the reader is within them."""


def connect(app: Sphinx) -> None:
    """Connect with Sphinx."""
    app.connect("html-page-context", leave_out_the_themes_list, priority=400)
    app.connect("html-page-context", add_list, priority=600)
    app.connect("html-collect-pages", forget_pages_that_are_not_searched)


def leave_out_the_themes_list(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Keep the theme from making its own list."""
    context["toctree"] = lambda **options: ""


def add_list(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add the list of pages, as the theme marks it up."""
    context["furo_navigation_tree"] = "".join(List(app.env, page, context["pathto"]).lines())


def forget_pages_that_are_not_searched(app: Sphinx) -> list[Any]:
    """Remove pages from the index of the search before it is written."""
    index = getattr(app.builder, "indexer", None)
    if index is not None:
        # Sphinx goes through them once for each word.
        index.prune([page for page in app.env.all_docs if not _matches(page, NOT_SEARCHED)])
    return []


def _matches(page: str, patterns: tuple[str, ...]) -> bool:
    """Whether a page's name matches one of some patterns."""
    return any(fnmatch(page, pattern) for pattern in patterns)


class List:
    """The list of pages as one page has it.

    Parameters
    ----------
    environment : BuildEnvironment
        Of Sphinx, after all pages were read.
    page : str
        The page that gets the list.
    path_to : callable
        Takes the name of a page and returns its address on this page.
    """

    def __init__(
        self, environment: BuildEnvironment, page: str, path_to: Callable[[str], str]
    ) -> None:
        self._environment = environment
        self._page = page
        self._path_to = path_to
        self._switches = 0
        self._parents = self._with_parents({page})

    def _with_parents(self, pages: set[str]) -> set[str]:
        """Pages, and all pages above them."""
        above = {
            parent
            for parent, children in self._environment.toctree_includes.items()
            if not pages.isdisjoint(children)
        }
        return pages if above <= pages else self._with_parents(pages | above)

    def lines(self) -> Iterator[str]:
        """The list in HTML."""
        root = self._environment.config.root_doc
        for section in self._environment.tocs[root].findall(addnodes.toctree):
            if caption := section.get("caption"):
                yield (
                    '<p class="caption" role="heading" aria-level="2">'
                    f'<span class="caption-text">{escape(caption)}</span></p>'
                )
            yield from self._pages(section["entries"], 1)

    def _pages(self, entries: list[tuple[str | None, str]], level: int) -> Iterator[str]:
        """Some pages, with those below them."""
        yield "<ul>"
        for title, page in entries:
            if page in self._environment.titles:
                yield from self._entry(title, page, level)
        yield "</ul>"

    def _entry(self, title: str | None, page: str, level: int) -> Iterator[str]:
        """One page, with those below it."""
        within = page in self._parents
        children = self._children(page) if level < _OPEN_LEVELS or within else []
        classes = [f"toctree-l{level}"]
        classes += ["current"] * within + ["current-page"] * (page == self._page)
        classes += ["has-children"] * bool(children)
        text = escape(title or self._environment.titles[page].astext())
        here = "current " * within
        yield f'<li class="{" ".join(classes)}">'
        yield f'<a class="{here}reference internal" href="{self._path_to(page)}">{text}</a>'
        if children:
            self._switches += 1
            name = f"toctree-checkbox-{self._switches}"
            yield (
                f'<input{" checked" * within} class="toctree-checkbox" id="{name}" name="{name}"'
                f' role="switch" type="checkbox" aria-label="Toggle navigation of {text}">'
                f'<label for="{name}"><span class="icon"><svg>'
                '<use href="#svg-arrow-right"></use></svg></span></label>'
            )
            yield from self._pages(children, level + 1)
        yield "</li>"

    def _children(self, page: str) -> list[tuple[str | None, str]]:
        """Pages below a page, with the titles that its tables of contents give them."""
        tables = self._environment.tocs[page].findall(addnodes.toctree)
        return [entry for table in tables for entry in table["entries"]]
