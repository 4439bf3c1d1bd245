# SPDX-License-Identifier: GPL-2.0-or-later
"""The same steps on copies of one store, each cut by a kill in another call of the store."""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pyosd.commands import Commands
from pyosd.errors import Unreachable
from tests.conftest import MakeHarness
from tests.harness import StartFailed, copy_store


class Cut(NamedTuple):
    """A target that was killed in the n-th call of the store and started again.

    done: steps that were answered.  osd: the target, until the next one is asked for.
    """

    n: int
    done: int
    osd: Commands


def cut_at_nth_call(
    make_harness: MakeHarness,
    template: Path,
    steps: Sequence[Callable[[Commands], object]],
    first: int,
    stride: int,
) -> Iterator[Cut]:
    """One for each n from first on, with a copy of the template; all steps of the last one are done."""
    for n in itertools.count(first, stride):
        store = template.with_name(f"store{n}")
        copy_store(template, store)
        done = 0
        with contextlib.suppress(StartFailed):
            harness = make_harness(dir=store, fault=n, fault_kill=1)
            with contextlib.suppress(Unreachable):
                for step in steps:
                    step(harness.osd)
                    done += 1
            harness.kill()
        again = make_harness(dir=store)
        yield Cut(n, done, again.osd)
        again.kill()
        shutil.rmtree(store)
        if done == len(steps):
            return
