# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd exec --local`: the script in an interpreter of its own here, which asks the target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyosd
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Settings
from pyosd.cli.jobs.exec_options import ExecOptions
from pyosd.identity import for_child
from pyosd.jobs.source import BYTECODE_SUFFIX
from pyosd.wire.indices import indices_in

__all__ = ["run_here"]

PYOSD_PARENT = str(Path(pyosd.__file__).resolve().parents[1])


def run_here(settings: Settings, options: ExecOptions, code: bytes) -> int:
    """Run the script in an interpreter of its own; the client's package `osd` asks the target."""
    if options.array:
        return run_members(settings, options, code)
    return run_one(settings, options, code, None)


def run_members(settings: Settings, options: ExecOptions, code: bytes) -> int:
    """One after the other.  Returns: the code of the first that failed."""
    assert options.array is not None
    indices = indices_in(options.array[0])
    codes = [run_one(settings, options, code, index) for index in indices]
    return next(filter(None, codes), Exit.OK)


def run_one(settings: Settings, options: ExecOptions, code: bytes, index: int | None) -> int:
    """The script, or that member of an array."""
    if options.limits_given:
        settings.say(f"{', '.join(options.limits_given)}: limits do not hold with --local")
    paths = [PYOSD_PARENT, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment, descriptors = for_child(settings.identity())
    environment |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "IOSD_TARGET": settings.url(),
        "IOSD_ZONE": str(options.zone),
        "IOSD_ARGS": json.dumps(list(options.args)),
        "IOSD_PROGRESS": "" if settings.quiet else "1",
        "IOSD_ARRAY_INDEX": "" if index is None else str(index),
        "IOSD_SCRIPT_NAME": options.script_name,
    }
    suffix = BYTECODE_SUFFIX if options.is_bytecode else ".py"
    with tempfile.NamedTemporaryFile(suffix=suffix) as script:
        script.write(code)
        script.flush()
        command = [sys.executable, "-P", "-m", "pyosd.osd", script.name, *options.args]
        done = subprocess.run(command, env=environment, pass_fds=descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    if options.style == "script" or done.returncode == 0:
        return done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Exit.JOB_FAILED
