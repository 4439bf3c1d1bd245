# SPDX-License-Identifier: GPL-2.0-or-later
"""Missing requirements of this host for some tests. `python3 -m tests.machine` prints them, and
nothing if all tests can run.

A chroot or a container with default settings gives no namespaces to sandboxes.  Tests that need
sandboxes are skipped there, all with the same reason.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SANDBOXD = ROOT / "build" / "sandbox" / "iosd-sandboxd"
KINDS = ("user", "mount", "pid", "net", "ipc", "uts")
NAMESPACES = ("unshare", "--map-root-user", "--fork", *(f"--{kind}" for kind in KINDS), "true")
MUST_RUN = frozenset(filter(None, os.environ.get("OSD_TESTS_MUST_RUN", "").split(",")))
SHARE_OF_TESTS = 90
"""Per cent of a processor that scripts get at least, the most there is: with the default they get
little while other workers compute."""


@functools.cache
def without_sandboxes() -> str | None:
    """Why this host cannot isolate scripts as the tests expect; None: it can."""
    if SANDBOXD.exists():
        command = [str(SANDBOXD), "--print-level", "--python-dir", str(ROOT / "pyosd")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            found = json.loads(done.stdout)
        except ValueError:
            return f"iosd-sandboxd cannot report the isolation of this host: {done.stderr.strip()}"
        if found["level"] == "full":
            return None
        return f"this host cannot isolate scripts ({'; '.join(found['missing'])})"
    # Before the first build: whether the kernel lets us make namespaces at all.
    done = subprocess.run(NAMESPACES, capture_output=True, text=True, check=False)
    return f"this host cannot isolate scripts ({done.stderr.strip()})" if done.returncode else None


@functools.cache
def without_fuse() -> str | None:
    """Why this host cannot mount file systems of programs; None: it can."""
    # By its file: packages are perhaps not built yet.
    spec = spec_from_file_location("device", ROOT / "pyosd" / "fronts" / "osdfs" / "device.py")
    assert spec and spec.loader
    device = module_from_spec(spec)
    spec.loader.exec_module(device)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        try:
            fd = device.attach(place, "probe", others=False)
        except OSError as error:
            return f"this host cannot mount by FUSE ({error})"
        device.detach(place, lazy=True)
        os.close(fd)
    return None


def unavailable(layer: str, why: str) -> None:
    """Skip a test that needs a layer which this machine lacks; in the gate, where it must run, fail it."""
    import pytest

    if layer in MUST_RUN:
        pytest.fail(f"{why} (OSD_TESTS_MUST_RUN={layer})")
    pytest.skip(why)


def main() -> None:
    if why := without_sandboxes():
        print(f"Tests that need sandboxes are skipped: {why}.")
    if why := without_fuse():
        print(f"Tests of `osd mount` are skipped: {why}.")


if __name__ == "__main__":
    main()
