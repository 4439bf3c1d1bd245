# SPDX-License-Identifier: GPL-2.0-or-later
"""How the C code is built.  ``python -m tools.structure`` prints a row for each folder of target/, with a
row for each folder inside it, and one for sandbox/.  A row has the largest cycle of calls between its files
and the length of its functions.  Then come long files, locks and threads.  Tests (test_*) are left out.

A file calls another when it names one of that file's external functions.  Files that call each other,
directly or over others, form a cycle: none of them can be understood, tested or replaced without the rest.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Folder", "Function", "Source", "folders", "largest_cycle", "read", "report"]

ROOT = Path(__file__).resolve().parent.parent
TREES = ("target", "sandbox")
LONG_FUNCTION = 40
LONG_FILE = 500

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.DOTALL)
NAME = re.compile(r"(?<!->)(?<![\w.])(?<!struct )(?<!enum )[A-Za-z_]\w*")
LOCKS = re.compile(
    r"\b(?:pthread_(mutex|cond|spinlock|barrier)_t|struct osd_(lock|rwlock))\s+([^*(){};]+?)\s*[;=]"
)
THREADS = re.compile(r"\bosd_(?:thread_start|helper_init|timers_start)\(\s*[^,\"]+,\s*\"([^\"]+)\"")


@dataclass(frozen=True)
class Function:
    """A definition; lines counts from its first line to its closing brace."""

    name: str
    lines: int
    static: bool


@dataclass
class Source:
    """A file of the product, without its comments."""

    path: str
    lines: int
    functions: list[Function]
    names: set[str]
    locks: Counter[str]
    threads: list[str]

    @property
    def folder(self) -> str:
        """The room it belongs to: a folder of target/ with all below it, or sandbox."""
        tree, *rest = self.path.split("/")
        return f"{tree}/{rest[0]}" if tree == "target" and len(rest) > 1 else tree


@dataclass
class Folder:
    """A folder of target/ with all below it, or sandbox/."""

    name: str
    sources: list[Source] = field(default_factory=list)

    @property
    def modules(self) -> list[Source]:
        """Its .c files: headers neither call nor are called."""
        return [source for source in self.sources if source.path.endswith(".c")]


def without(text: str, *, strings: bool) -> str:
    """The code with blanks for its comments, and with empty strings when asked for."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        return token[0] * 2 if strings else token

    return TOKEN.sub(blank, text)


def functions_of(code: str) -> Iterator[Function]:
    """In this code a brace alone in the first column opens a function, and nothing else."""
    lines = code.split("\n")
    for at, line in enumerate(lines):
        if line != "{":
            continue
        first = at
        while first > 0 and lines[first - 1].strip() and lines[first - 1][0] not in "}#":
            first -= 1
        head = ATTRIBUTE.sub("", "\n".join(lines[first:at]))
        named = re.search(r"(\w+)\s*\(", head)
        end = next((i for i in range(at, len(lines)) if lines[i].startswith("}")), None)
        if named and end is not None:
            yield Function(named[1], end - first + 1, "static" in head[: named.start()].split())


def source_of(path: str, text: str) -> Source:
    kept = without(text, strings=False)
    code = without(text, strings=True)
    locks = Counter[str]()
    for pthread, own, names in LOCKS.findall(code):
        locks[pthread or own] += len(names.split(","))
    return Source(
        path,
        text.count("\n"),
        list(functions_of(code)),
        set(NAME.findall(code)),
        locks,
        THREADS.findall(kept),
    )


def read(root: Path) -> list[Source]:
    """All C files of the product below root."""
    paths = (path for tree in TREES for path in sorted((root / tree).rglob("*.[ch]")))
    return [
        source_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in paths
        if not path.name.startswith("test_")
    ]


def folders(sources: Iterable[Source]) -> list[Folder]:
    """The sources by folder, in the order of names."""
    found: dict[str, Folder] = {}
    for source in sources:
        found.setdefault(source.folder, Folder(source.folder)).sources.append(source)
    return [found[name] for name in sorted(found)]


def rooms(folder: Folder) -> list[Folder]:
    """The folders inside this one, with all below them."""
    found: dict[str, Folder] = {}
    for source in folder.sources:
        inner = source.path[len(folder.name) + 1 :].split("/")
        if len(inner) > 1:
            name = f"{folder.name}/{inner[0]}"
            found.setdefault(name, Folder(name)).sources.append(source)
    return [found[name] for name in sorted(found)]


def calls_of(modules: Iterable[Source]) -> dict[str, set[str]]:
    """Each file with those of the same folder that it calls."""
    modules = list(modules)
    owner = {
        function.name: source.path
        for source in modules
        for function in source.functions
        if not function.static
    }
    return {
        source.path: {owner[name] for name in source.names & owner.keys()} - {source.path}
        for source in modules
    }


def largest_cycle(folder: Folder) -> list[Source]:
    """The files of the folder's largest cycle of calls; none: no two call each other."""
    calls = calls_of(folder.modules)
    reached: dict[str, set[str]] = {}
    for start in calls:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            for path in calls[ahead.pop()] - seen:
                seen.add(path)
                ahead.append(path)
        reached[start] = seen
    size = {source.path: source.lines for source in folder.modules}
    cycles = [
        frozenset(path for path in reached[start] if start in reached[path])
        for start in calls
        if start in reached[start]
    ]
    largest = max(cycles, key=lambda cycle: sum(size[path] for path in cycle), default=frozenset())
    return [source for source in folder.modules if source.path in largest]


def folder_row(folder: Folder) -> str:
    modules = folder.modules
    total = sum(source.lines for source in modules)
    cycle = largest_cycle(folder)
    share = 100 * sum(source.lines for source in cycle) / max(total, 1)
    lengths = sorted(f.lines for source in folder.sources for f in source.functions) or [0]
    return (
        f"{folder.name:20} {len(modules):5} {total:6} {len(cycle):6} {share:5.0f} %"
        f" {statistics.median(lengths):7.0f} {lengths[9 * (len(lengths) - 1) // 10]:6}"
        f" {lengths[-1]:8} {sum(n > LONG_FUNCTION for n in lengths):6}"
    )


def report(sources: list[Source]) -> Iterator[str]:
    """The lines to print."""
    yield f"{'':27}.c {'':17}cycle   length of functions"
    yield (
        f"{'folder':20} {'files':>5} {'lines':>6} {'files':>6} {'share':>7}"
        f" {'median':>7} {'9 of 10':>6} {'longest':>7} {f'> {LONG_FUNCTION}':>6}"
    )
    for folder in folders(sources):
        yield folder_row(folder)
        yield from map(folder_row, rooms(folder))
    lines = Counter[str]()
    for source in sources:
        lines[source.path[-2:]] += source.lines
    yield f"lines in all: {lines['.c']} in .c, {lines['.h']} in .h"
    long = [source for source in sources if source.lines > LONG_FILE]
    yield f"\nfiles above {LONG_FILE} lines: {len(long)} of {len(sources)}"
    yield from (f"  {source.lines:5}  {source.path}" for source in long)
    locks = sum((source.locks for source in sources), Counter[str]())
    yield "\nlocks: " + ", ".join(f"{count} {kind}" for kind, count in sorted(locks.items()))
    for source in sources:
        if source.locks:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(source.locks.items()))
            yield f"  {source.path:36} {kinds}"
    started = sorted((name, source.path) for source in sources for name in source.threads)
    yield f"\nthreads started: {len(started)} kinds"
    yield from (f"  {name:16} {path}" for name, path in started)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.structure", description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="the tree to measure")
    print("\n".join(report(read(parser.parse_args().root))))


if __name__ == "__main__":
    main()
