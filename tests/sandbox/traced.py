# SPDX-License-Identifier: GPL-2.0-or-later
"""`make syscalls`: compares the system calls that sandboxes make with those they are allowed.

Runs tests whose scripts are honest under strace and looks at each process from the moment its
filter is on.  A call that was denied is one the list lacks; an entry that no call met is one the
list could do without.  Both are failures unless a reason stands below.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "sandbox" / "seccomp_rules.c"
HONEST = (
    "tests/sandbox/test_jobs.py",
    "tests/sandbox/test_osd_package.py",
    "tests/sandbox/test_reuse.py",
    "tests/sandbox/test_scratch.py",
    "tests/exec/test_exec.py",
    "tests/exec/test_pools.py",  # numpy
    "tests/exec/test_zones.py",
    "--deselect=tests/sandbox/test_jobs.py::test_ends_without_a_word",  # a traced process 1 dies otherwise
)
BY_ARGUMENT = {"ioctl": 1, "fcntl": 1}
KEPT = {
    "fstat": "C libraries from 2.39 on ask so",
    "statx": "Rust's standard library asks so",
    "faccessat": "stands in for faccessat2 on kernels before 5.8",
    "getcpu": "the vDSO answers, where there is one",
    "gettimeofday": "the vDSO answers, where there is one",
    "time": "the vDSO answers, where there is one",
    "restart_syscall": "the kernel's own, after a signal",
    "renameat": "rename() asks so on other machines",
    "fcntl:F_SETLKW": "fcntl.lockf() asks so",
    "fcntl:F_GETFD": "libraries look whether a descriptor is open",
    "fcntl:F_SETFD": "libraries close what they open on exec",
}
MISSED = {
    "tgkill": "abort(), which then ends by SIGSEGV",
    "epoll_create1": "a test tries that it is denied",
    "pipe2": "a test tries that it is denied",
    "fchmod": "a test tries that it is denied",
}

LINE = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)(?:\((.*)| resumed>(.*))")
NEW_THREAD = re.compile(r"= \d+ /\* (\d+) in strace's PID NS \*/")
RESULT = re.compile(r"= (-?\d+|0x[0-9a-f]+|\?)(?: (E[A-Z]+))?")


class Trace:
    """Output of strace, line by line. Afterwards `allowed` and `denied` count calls behind a
    filter."""

    def __init__(self) -> None:
        self._group: dict[int, int] = {}
        self._filtered: set[int] = set()
        self._begun: dict[int, str] = {}
        self._calls: dict[int, Counter[tuple[str, bool]]] = defaultdict(Counter)

    def take(self, line: str) -> None:
        """One line of `strace -f --decode-pids=pidns`."""
        found = LINE.match(line)
        if not found:
            return
        thread, name = int(found[1]), found[2]
        if line.rstrip().endswith("<unfinished ...>"):
            self._begun[thread] = (found[3] or "").rpartition("<unfinished")[0]
            return
        arguments = found[3] if found[3] is not None else self._begun.pop(thread, "") + found[4]
        self._call(thread, name, arguments)

    def _call(self, thread: int, name: str, text: str) -> None:
        results = RESULT.findall(text)
        if not results:
            return
        result, error = results[-1]
        if name == "seccomp" and "SECCOMP_SET_MODE_FILTER" in text and result == "0":
            self._filter(self._group.get(thread, thread))
            return
        if name in ("clone", "clone3") and "CLONE_THREAD" in text:
            for child in NEW_THREAD.findall(text):
                self._group[int(child)] = self._group.get(thread, thread)
        if name in BY_ARGUMENT:
            words = re.split(r"[,)] *", text)
            name += ":" + words[BY_ARGUMENT[name]].strip()
        self._calls[thread][name, error == "EPERM"] += 1

    def _filter(self, group: int) -> None:
        self._filtered.add(group)
        for thread in list(self._calls):
            if self._group.get(thread, thread) == group:
                del self._calls[thread]

    def _sum(self, denied: bool) -> Counter[str]:
        total: Counter[str] = Counter()
        for thread, calls in self._calls.items():
            if self._group.get(thread, thread) in self._filtered:
                total.update({name: n for (name, was), n in calls.items() if was == denied})
        return total

    @property
    def allowed(self) -> Counter[str]:
        """By call, or call:request."""
        return self._sum(denied=False)

    @property
    def denied(self) -> Counter[str]:
        """Those that failed with EPERM."""
        return self._sum(denied=True)

    @property
    def sandboxes(self) -> int:
        """How many processes got a filter."""
        return len(self._filtered)


def listed() -> set[str]:
    """The calls on the list, from its source; call:request where the request decides."""
    text = RULES.read_text()
    names = set(re.findall(r"NUMBER\((\w+)\)", text)) - {"name", "clone3", *BY_ARGUMENT}
    arrays = (("ioctl", "requests"), ("fcntl", "commands"), ("fcntl", "locks"), ("fcntl", "looks"))
    for call, array in arrays:
        values = re.search(rf"{array}\[\] = {{(.*?)}}", text, re.S)
        assert values
        names |= {f"{call}:{each.strip()}" for each in values[1].split(",")}
    return names


def run(tests: Iterable[str]) -> tuple[int, Trace]:
    """The tests under strace: pytest's exit code, and what was seen."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        pipe = Path(folder) / "trace"
        os.mkfifo(pipe)

        def read() -> None:
            with pipe.open(errors="replace") as lines:
                for line in lines:
                    trace.take(line)

        reader = threading.Thread(target=read)
        reader.start()
        pytest = [sys.executable, "-m", "pytest", "-q", "--timeout=1200", *tests]
        strace = ["strace", "-f", "-qq", "-s", "0", "--decode-pids=pidns", "-o", str(pipe)]
        code = subprocess.run([*strace, *pytest], cwd=ROOT, check=False).returncode
        reader.join()
    return code, trace


def main() -> int:
    """Run, print both lists, say by the exit code whether they are as they should be."""
    parser = argparse.ArgumentParser(prog="make syscalls", description=__doc__)
    parser.add_argument("tests", nargs="*", default=HONEST)
    code, trace = run(parser.parse_args().tests)
    print(
        f"{trace.sandboxes} sandboxes, {sum(trace.allowed.values()):,} calls behind their filters"
    )
    found = [("denied", name, MISSED.get(name)) for name in sorted(trace.denied)]
    found += [("unused", name, KEPT.get(name)) for name in sorted(listed() - trace.allowed.keys())]
    for what, name, reason in found:
        print(f"{what}\t{name}\t{reason or 'NOT EXPECTED'}")
    return code or any(reason is None for *_, reason in found)


if __name__ == "__main__":
    sys.exit(main())
