# SPDX-License-Identifier: GPL-2.0-or-later
"""What a test run takes from whoever starts it, and what not: a target they use, their login, their
configuration, how they like their terminal.
"""

from __future__ import annotations

import compileall
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

OF_THE_RUN = {"IOSD_TGTD", "IOSD_TGT_SOURCE", "IOSD_SEED", "IOSD_LONG", "IOSD_STEPS", "IOSD_FUZZ_SECONDS",
              "IOSD_EVERY_CALL", "IOSD_CORE_SANITIZED"}  # fmt: skip
"""Variables by which people tell tests what to do."""
OF_A_TERMINAL = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"}
OF_A_GIT_HOOK = {"GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX"}
PRODUCT = ("pyosd", "iosd_host", "iosd_secmgr")
FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
UMASK = 0o022
SOURCE = Path(__file__).resolve().parents[1]


def settle() -> Callable[[], None]:
    """Make surroundings that are the same everywhere, for this process and those it starts.

    Returns: what removes the folders that were made for it.
    """
    strange = OF_A_TERMINAL | OF_A_GIT_HOOK | {"TGT_IPC_SOCKET"}
    strange |= {name for name in os.environ if name.startswith("IOSD_")} - OF_THE_RUN
    for name in strange & os.environ.keys():
        del os.environ[name]
    os.umask(UMASK)
    # pytest rewrites the assertions of all test modules, 10 s of work for each worker: kept for later runs.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    folder = Path(tempfile.mkdtemp(prefix="iosd-run-"))
    folder.chmod(0o755)
    for name in FOLDERS:
        os.environ[name] = str(folder / name)
    # Processes of tests must not announce themselves in /run/iosd, nor use announcements there.
    os.environ["IOSD_RUN"] = str(folder / "run")
    (folder / "run").mkdir()
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def compile_product() -> None:
    """Keep the product's byte-code beside its source, as an installation has it: tests start hundreds of
    its programs, each of which would compile it, and zygotes keep nothing.
    """
    for each in PRODUCT:
        compileall.compile_dir(SOURCE / each, quiet=1)
