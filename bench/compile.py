# SPDX-License-Identifier: GPL-2.0-or-later
"""C programs that only the bench needs, built when it needs them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.target import SOURCE

BUILT = SOURCE / "build" / "bench"
FLAGS = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror")


class CannotCompile(Exception):
    """The text says what to install, or what the compiler says."""


def libraries(package: str, debian: str) -> list[str]:
    """Flags of pkg-config for a library.

    Raises: CannotCompile: it is not there; debian is the Debian package to install.
    """
    try:
        done = subprocess.run(
            ["pkg-config", "--cflags", "--libs", package],
            capture_output=True,
            check=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        raise CannotCompile(f"apt-get install {debian} pkg-config") from None
    return done.stdout.split()


def compiled(source: str, name: str, flags: Sequence[str] = ()) -> Path:
    """The program (or what else flags ask for) of bench/SOURCE, made anew.

    Raises: CannotCompile.
    """
    BUILT.mkdir(parents=True, exist_ok=True)
    output, made = BUILT / name, BUILT / f"{name}.{os.getpid()}"
    command = ["cc", *FLAGS, "-o", str(made), str(SOURCE / "bench" / source), *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotCompile(f"no C compiler: {error.strerror}") from None
    if done.returncode:
        raise CannotCompile(f"{source} does not compile: {done.stderr.strip()[:300]}")
    made.replace(output)  # another process may make and load it at the same time
    return output
