# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign: files of two mounts under random operations, with kill -9 of the target between.

    python -m tests.osdfs.fsx FOLDER --minutes 60 --kills

FOLDER gets the store of a new target, on the file system that is to bear the load.  After each operation a
model says what the file must hold (test_torture.py).  Prints a line of JSON at the end; the exit code is 1
if a file is wrong.  Runs as root, where the kernel has FUSE.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import random
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from pyosd.types import ref
from tests.osdfs.conftest import MountedFiles
from tests.osdfs.test_torture import MOST, TorturedFile
from tests.serving import Serving
from tests.waiting import until

FILES = 4
KEPT = 100  # operations of the history
STEPS_LEAST = 20  # of a file: a target that was killed may be away until the end
BETWEEN_KILLS = (0.5, 5.0)  # seconds


class CampaignFile(TorturedFile):
    """A file that one thread works on.  steps: operations.  unknown: APPENDs cut off by a kill."""

    def __init__(self, folders: list[Path], choices: random.Random) -> None:
        super().__init__(folders, choices)
        self.steps = self.unknown = 0

    def work(self, end: float) -> None:
        """Operate until a moment of time.monotonic(), and so many times at least."""
        operations = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("do_")]
        while time.monotonic() < end or self.steps < STEPS_LEAST:
            self.choices.choice(operations)()
            self.steps += 1
            del self.history[:-KEPT]
        self.check(0, 2 * MOST)
        os.close(self.fd)  # the end of a mount waits for open files

    def do_append(self) -> None:
        """An APPEND is not sent again.  After an error some of its first bytes may be there."""
        before = bytes(self.model)
        state = self.choices.getstate()
        try:
            super().do_append()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self.unknown += 1
            self.choices.setstate(state)
            data = self.choices.randbytes(self.choices.randrange(1, 9000))
            length = os.fstat(self.fd).st_size
            self.note("append cut off", len(before), len(data), length)
            assert len(before) <= length <= len(before) + len(data), self.history
            self.model = bytearray((before + data)[:length])
            self.check(0, 2 * MOST)


class Campaign:
    """Threads with a file each.  failed: what went wrong."""

    def __init__(self, serving: Serving, seed: int, minutes: float) -> None:
        self.serving, self.seed, self.minutes = serving, seed, minutes
        self.end = 0.0
        self.failed = list[str]()
        self.files = list[CampaignFile]()
        self.kills = 0

    def run(self, *, kills: bool) -> dict[str, Any]:
        """Returns: what is printed."""
        with self.serving.connect() as target:
            path = f"/{ref(target.create_partition())}"
            for number in range(FILES):
                target.fs.mkdir(f"{path}/{number}")
        one, other = (MountedFiles(self.serving.url, path) for _ in range(2))
        with one as first, other as second:
            self.end = time.monotonic() + 60 * self.minutes
            workers = [
                threading.Thread(target=self._work, args=(number, [first, second]))
                for number in range(FILES)
            ]
            for each in workers:
                each.start()
            if kills:
                self._kill([first, second])
            for each in workers:
                each.join()
        return {
            "seed": self.seed,
            "steps": sum(each.steps for each in self.files),
            "kills": self.kills,
            "appends_cut_off": sum(each.unknown for each in self.files),
            "failed": self.failed,
        }

    def _work(self, number: int, tops: list[Path]) -> None:
        choices = random.Random(f"{self.seed}-{number}")
        try:
            file = CampaignFile([each / str(number) for each in tops], choices)
            self.files.append(file)
            file.work(self.end)
        except BaseException as error:  # pytest's failures are no Exception
            self.failed.append(f"file {number}: {error}")
            self.end = 0.0

    def _kill(self, tops: list[Path]) -> None:
        choices = random.Random(self.seed)
        while not self.kills or time.monotonic() + BETWEEN_KILLS[1] < self.end:
            time.sleep(choices.uniform(*BETWEEN_KILLS))
            self.serving.kill("tgtd")
            self.kills += 1
            self.serving.restarted()
            for each in tops:
                until(partial(_answers, each))


def _answers(top: Path) -> bool:
    """Whether a mount has the target again."""
    try:
        os.statvfs(top)
    except OSError:
        return False
    return True


def main(words: list[str] | None = None) -> int:
    """Returns: the exit code."""
    parser = argparse.ArgumentParser("python -m tests.osdfs.fsx", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long it runs [60]")
    parser.add_argument("--kills", action="store_true", help="kill the target again and again")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = parser.parse_args(words)
    with Serving("--no-sandboxes", data=given.folder / "store") as serving:
        found = Campaign(serving, given.seed, given.minutes).run(kills=given.kills)
    print(json.dumps(found))
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
