# SPDX-License-Identifier: GPL-2.0-or-later
"""`make coverage`: run the gate in a copy of the source, and print which share of the lines it executes.

The C trees `target` and `pyosd/_core` are compiled for gcov, with their unit tests.  Python runs under
coverage.py, child processes too.  Processes that are killed and those in sandboxes cannot write their
counters, so their lines count only where another process executes them; `sandbox` is left out for that
reason.

    python -m tests.covered [--jobs N] [PYTEST_ARGUMENT...]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.source_copy import ROOT, copy_source

TREE = ROOT / "build" / "coverage"
C_TREES = ("target", "pyosd/_core")
# Many threads update the counters, and many processes the files.
FLAGS = (
    "--coverage -fprofile-update=atomic -Wno-maybe-uninitialized"  # counters confuse that warning
)
NOT_THE_PRODUCT = re.compile(r"(^|/)test_[^/]*$|^target/testing/|^target/harness/|^bench/")
PACKAGES = "pyosd,iosd_host,iosd_secmgr"
CONFIGURATION = f"""[run]
parallel = true
patch = subprocess
sigterm = true
data_file = {TREE / "python" / "data"}
source = {PACKAGES}
"""
Lines = dict[str, dict[int, bool]]
"""By file: its lines that can be executed, and whether they were."""


def build() -> None:
    """The C trees with counters, `sandbox` without."""
    if not (TREE / ".venv").exists():
        (TREE / ".venv").symlink_to(ROOT / ".venv")
    environment = {name: value for name, value in os.environ.items() if name != "CFLAGS"}
    for tree in C_TREES:
        command = ["cmake", "-S", str(TREE / tree), "-B", str(TREE / "build" / tree), "-G", "Ninja"]
        command += [f"-DCMAKE_C_FLAGS={FLAGS}", "-DCMAKE_BUILD_TYPE=Debug", "-DIOSD_UNIT_TESTS=ON"]
        command += ["--no-warn-unused-cli", "--log-level=WARNING"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    setup = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(setup, cwd=TREE, env=environment, check=True)
    for name in ("tgtd", "tgtd-asan"):
        if (ROOT / "build" / name).exists():
            shutil.copytree(ROOT / "build" / name, TREE / "build" / name, dirs_exist_ok=True)


def clear_counters() -> None:
    """No counts yet; tgtd writes them as another user."""
    shutil.rmtree(TREE / "python", ignore_errors=True)
    (TREE / "python").mkdir()
    (TREE / "python").chmod(0o777)
    for notes in (TREE / "build").rglob("*.gcno"):
        counters = notes.with_suffix(".gcda")
        counters.write_bytes(b"")
        counters.chmod(0o666)


def run_tests(jobs: int, words: Iterable[str]) -> int:
    """The gate, and the C unit tests of target/ without the gate's sanitizers.

    Returns: pytest's exit code.
    """
    units = ["ctest", "--test-dir", str(TREE / "build" / "target"), "-j", str(jobs), "--quiet"]
    subprocess.run(units, check=False)
    settings = TREE / "python" / "settings"
    settings.write_text(CONFIGURATION)
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest"]
    command += ["-n", str(jobs), "--dist", "loadfile", "--no-loadscope-reorder", "-q", *words]
    return subprocess.run(command, cwd=TREE, check=False).returncode


def lines_of_c() -> Lines:
    """Counts of gcov, over all programs that a file is compiled into."""
    found: Lines = defaultdict(dict)
    for notes in (TREE / "build").rglob("*.gcno"):
        command = ["gcov", "--json-format", "--stdout", str(notes)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TREE)
        for answer in done.stdout.splitlines():
            for file in json.loads(answer)["files"]:
                path = Path(TREE, file["file"]).resolve()
                name = str(path.relative_to(TREE)) if path.is_relative_to(TREE) else ""
                if name.startswith(C_TREES) and not NOT_THE_PRODUCT.search(name):
                    for line in file["lines"]:
                        number = line["line_number"]
                        found[name][number] = found[name].get(number, False) or line["count"] > 0
    return found


def lines_of_python() -> Lines:
    """Records of coverage.py from all processes."""
    folder = TREE / "python"
    coverage = [sys.executable, "-m", "coverage"]
    words = [f"--rcfile={folder / 'settings'}", "-q"]
    subprocess.run([*coverage, "combine", *words], cwd=TREE, check=True)
    report = folder / "report.json"
    subprocess.run([*coverage, "json", *words, "-i", "-o", str(report)], cwd=TREE, check=True)
    found: Lines = {}
    for name, file in json.loads(report.read_text())["files"].items():
        executed = dict.fromkeys(file["executed_lines"], True)
        found[name] = executed | dict.fromkeys(file["missing_lines"], False)
    return found


def table(lines: Lines) -> list[str]:
    """A row for each folder, and their sum."""
    total: Counter[str] = Counter()
    executed: Counter[str] = Counter()
    for name, file in lines.items():
        folder = "/".join(name.split("/")[:2]) if name.count("/") > 1 else name.split("/")[0]
        total[folder] += len(file)
        executed[folder] += sum(file.values())
    total["all"], executed["all"] = total.total(), executed.total()
    return [
        f"| `{folder}` | {count:,} | {100 * executed[folder] / max(1, count):.1f} |"
        for folder, count in total.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.covered", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="workers of the gate")
    arguments, words = parser.parse_known_args()
    copy_source(TREE)
    build()
    clear_counters()
    code = run_tests(arguments.jobs, words)
    for language, lines in (("C", lines_of_c()), ("Python", lines_of_python())):
        print(f"\n| {language} | Lines | Executed, % |\n|---|---|---|")
        print(*sorted(table(lines)), sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
