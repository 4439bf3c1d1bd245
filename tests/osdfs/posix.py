# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes docs/osdfs-posix.md: which tests of pjdfstest pass on a mounted partition.

    python -m tests.osdfs.posix /path/to/pjdfstest >docs/osdfs-posix.md

The folder has pjdfstest as its authors publish it (github.com/pjd/pjdfstest), built by its README.  It is
not a part of iosd.  Runs as root, a few minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyosd.types import ref
from tests.osdfs.conftest import MountedFiles
from tests.serving import Serving

WORKERS = 3
RESULT = re.compile(r"^(ok|not ok) (\d+)(.*)$", re.MULTILINE)
REASONS = {
    "ftruncate/12.t": "a length that the target has no room for is refused with ENOSPC, not EFBIG",
    "truncate/12.t": "a length that the target has no room for is refused with ENOSPC, not EFBIG",
    "rename/24.t": "a directory has the link count 1",
}
HEAD = """# POSIX behaviour of the file system

`osd mount` under [pjdfstest](https://github.com/pjd/pjdfstest), the test suite of POSIX file
systems. [The file system](osdfs.md) is the reference. This page is made by `python -m
tests.osdfs.posix FOLDER`, where FOLDER has pjdfstest as its authors publish it, built.
"""


@dataclass(frozen=True)
class TestedFile:
    """One file of the suite.  todo: failures that the suite itself expects."""

    name: str
    passed: int
    failed: tuple[int, ...]
    todo: int


def run_file(suite: Path, path: Path, top: Path) -> TestedFile:
    """Run one file of tests.  They make names of their own, so several run at a time."""
    done = subprocess.run(
        ["sh", str(path)], cwd=top, capture_output=True, text=True, check=False, timeout=600
    )
    found = RESULT.findall(done.stdout)
    failed = [(int(number), rest) for word, number, rest in found if word == "not ok"]
    unexpected = tuple(number for number, rest in failed if "# TODO" not in rest)
    planned = re.search(r"^1\.\.(\d+)", done.stdout, re.MULTILINE)
    missing = int(planned[1]) - len(found) if planned else 1
    if missing > 0:
        unexpected += tuple(range(len(found) + 1, len(found) + missing + 1))
    name = str(path.relative_to(suite))
    passed = sum(word == "ok" for word, _, _ in found)
    return TestedFile(name, passed, unexpected, len(failed) - len(unexpected))


def page(results: list[TestedFile]) -> str:
    """The page."""
    groups = dict[str, list[TestedFile]]()
    for each in results:
        groups.setdefault(each.name.split("/")[0], []).append(each)
    passed, failed = sum(each.passed for each in results), sum(len(each.failed) for each in results)
    lines = [HEAD, f"{passed} tests pass, {failed} do not.", "", "| Call | passed | not passed |"]
    lines.append("|---|---|---|")
    for group, members in sorted(groups.items()):
        bad = sum(len(each.failed) for each in members)
        lines.append(f"| `{group}` | {sum(each.passed for each in members)} | {bad or ''} |")
    lines += ["", "## Not passed", "", "| File | Tests | Reason |", "|---|---|---|"]
    for each in results:
        if each.failed:
            numbers = ", ".join(map(str, each.failed))
            lines.append(f"| {each.name} | {numbers} | {REASONS.get(each.name, 'not explained')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    suite = folder / "tests"
    files = sorted(suite.rglob("*.t"))
    assert files and (folder / "pjdfstest").exists(), "build pjdfstest first (its README)"
    with Serving("--no-sandboxes") as serving:
        with serving.connect() as target:
            partition = ref(target.create_partition())
        with MountedFiles(serving.url, f"/{partition}") as top, ThreadPoolExecutor(WORKERS) as pool:
            top.chmod(0o755)
            results = [*pool.map(lambda path: run_file(suite, path, top), files)]
    sys.stdout.write(page(results))


if __name__ == "__main__":
    main()
