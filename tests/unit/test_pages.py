# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of documentation: links lead somewhere, the index has every page, prose fits 100 columns.

Each rule is one item, which lists every line that breaks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TREES = ("target", "sandbox", "pyosd", "iosd_host", "iosd_secmgr", "tests")
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(ROOT / tree / "README.md" for tree in TREES),
        *DOCS.rglob("*.md"),
    ]
)
INDEX = DOCS / "README.md"
# Rooms of the source: these may name files without links, and be wide.
ROOMS = {ROOT / tree / "README.md" for tree in TREES}
CODE = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.M)
BARE = re.compile(r"[\w/.-]+\.md\b")
SOURCE = re.compile(
    r"`((?:tests|target|sandbox|pyosd|iosd_host|iosd_secmgr)/[\w/.-]+\.(?:py|c|h))`"
)
WIDTH = 100


def prose(page: Path) -> str:
    """The page without its blocks of code; lines keep their numbers."""
    text = page.read_text(encoding="utf-8")
    return CODE.sub(lambda block: "\n" * block[0].count("\n"), text)


def lines(page: Path) -> Iterator[tuple[str, str]]:
    """Each line of prose, and where it is."""
    for number, line in enumerate(prose(page).splitlines(), 1):
        yield f"{page.relative_to(ROOT)}:{number}", line


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in HEADING.findall(prose(page)):
        text = LINK.sub(lambda link: link[0][1:].partition("](")[0], heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.append(slug)
    again = [f"{slug}-{found[:n].count(slug)}" for n, slug in enumerate(found)]
    return frozenset(found) | frozenset(again)


def broken(page: Path, link: str) -> bool:
    """Whether a link of a page leads nowhere.  Links to other hosts are not followed."""
    if re.match(r"[a-z]+:", link):
        return False
    name, _, anchor = link.partition("#")
    other = (page.parent / name).resolve() if name else page
    if not other.exists():
        return True
    return bool(anchor) and (other.suffix != ".md" or anchor not in anchors(other))


def test_links_lead_somewhere() -> None:
    wrong = [
        f"{place}: {link}"
        for page in PAGES
        for place, line in lines(page)
        for link in LINK.findall(re.sub(r"`[^`]*`", "", line))
        if broken(page, link)
    ]
    assert not wrong, "\n".join(wrong)


def test_named_sources_exist() -> None:
    """Files of the source in code spans, except the placeholders in capitals."""
    wrong = [
        f"{place}: {name}"
        for page in PAGES
        for place, line in lines(page)
        for name in SOURCE.findall(line)
        if not (ROOT / name).exists() and "NAME" not in name
    ]
    assert not wrong, "\n".join(wrong)


def test_the_index_has_every_page() -> None:
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in LINK.findall(prose(INDEX))}
    missing = [str(page) for page in DOCS.rglob("*.md") if page != INDEX and page not in linked]
    assert not missing, "\n".join(missing)


def test_pages_are_named_by_links() -> None:
    wrong = [
        f"{place}: {name}"
        for page in PAGES
        if page not in ROOMS
        for place, line in lines(page)
        for name in BARE.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", line))
        if not re.search(rf"\[[^\]]*{re.escape(name)}", line)
    ]
    assert not wrong, "\n".join(wrong)


def test_prose_fits_its_columns() -> None:
    wrong = [
        f"{place}: {len(line)} columns"
        for page in PAGES
        if page not in ROOMS
        for place, line in lines(page)
        if len(line) > WIDTH and not line.lstrip().startswith(("|", "![", "#"))
    ]
    assert not wrong, "\n".join(wrong)
