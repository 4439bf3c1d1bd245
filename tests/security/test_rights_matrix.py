# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command with every second object, method and defect of a capability: the target permits and refuses
what rights_model.py says.  All differences are reported together, one line each.

`--rights-matrix=full` tries the whole product; the sample has every defect of every request, each under
one pair of methods where the request is another one with attributes.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MakeHarness
from tests.security import rights_cases as cases
from tests.security import rights_defects as defects
from tests.security import rights_model as m
from tests.security.rights_estate import TOKEN, Estate, open_estate

METHODS = range(4)
SOME_OF_WEAK = 7
LONGEST_S = 3600
"""Seconds.  The whole product takes three minutes on an idle machine, many times that beside other work."""
PAIRS = [*itertools.product(METHODS, METHODS)]
"""Least method of the partition, method of the capability."""


@pytest.fixture
def estate(tmp_path: Path, make_harness: MakeHarness) -> Estate:
    key = tmp_path / "master.key"
    options = {"memory": 1, "security": "capkey", "token": TOKEN.hex(), "master-key": key}
    return open_estate(make_harness(**options).transport, key)


class Tally:
    """Differences between model and target, and which shapes were carried out at all."""

    def __init__(self) -> None:
        self.tried = 0
        self.mismatches: list[str] = []
        self.controls: dict[str, bool] = {}

    def note(self, case: str, expected: m.Verdict, got: m.Verdict) -> None:
        self.tried += 1
        same = expected.permitted == got.permitted and expected.seen == got.seen
        if same and not expected.permitted:
            same = expected.code == got.code and expected.at in (None, got.at)
        if not same:
            self.mismatches.append(f"{case}: model says {expected}, target {got}")

    def check(self) -> None:
        """Prints how many cases there were (pytest -rP shows it)."""
        print(f"{self.tried:,} cases")
        text = "\n".join(self.mismatches)
        assert not self.mismatches, f"{len(self.mismatches)} of {self.tried} cases:\n{text}"
        refused = [name for name, worked in self.controls.items() if not worked]
        assert not refused, f"never carried out, so that refusals prove nothing: {refused}"


class Trial:
    """One shape in one place.  Cases are a defect of the CDB's capability and one of the extension
    capability; "" is none."""

    def __init__(self, t: Estate, tally: Tally, shape: cases.Shape, pid: int, method: int) -> None:
        self.t, self.tally, self.shape, self.pid, self.method = t, tally, shape, pid, method
        place = "root" if shape.of_root else "partition"
        least = m.METHODS[t.model.policy(pid).method]
        self.where = f"{shape.name}, {shape.second}, {place} of {least}"

    def run(self, defect: str, extension: str) -> None:
        t, sent = self.t, self.shape.make(self.t, self.pid)
        c, extensions = self._capabilities(sent.ask, defect, extension)
        expected = m.judge(t.model, sent.ask, c, extensions)
        answer = t.try_it(sent.request, c, extensions, sent.room)
        got = t.outcome(answer)
        if got.permitted:
            if sent.seen:
                got = m.Verdict(True, "", seen=frozenset(sent.seen(t, answer)))
            if sent.after:
                sent.after(t, answer)
            if sent.spends:
                t.spend()
            self.tally.controls[self.shape.name] = True
        self.tally.note(f"{self.where}, {self._how(defect, extension)}", expected, got)

    def _capabilities(
        self, ask: m.Ask, defect: str, extension: str
    ) -> tuple[m.Capability | None, tuple[m.Capability, ...]]:
        if self.method == m.NOSEC:
            return None, ()
        whole = defects.good(ask, self.method, bool(extension))
        c = defects.spoiled(defect, self.t.model, ask, whole)
        if not extension:
            return c, ()
        other = defects.good_extension(ask, self.method)
        return c, (defects.spoiled_extension(extension, self.t.model, ask, other),)

    def _how(self, defect: str, extension: str) -> str:
        if self.method == m.NOSEC:
            return "no capability"
        also = f", extension capability {extension}" if extension else ""
        return f"{m.METHODS[self.method]} capability {defect}{also}"


def pairs_of_defects(sent: cases.Sent, method: int, full: bool) -> Iterator[tuple[str, str]]:
    """Defects of the capability, and of the extension capability where there is a second object."""
    if method == m.NOSEC:
        yield "", ""
        return
    if not sent.room:
        yield from ((defect, "") for defect in defects.DEFECTS)
    if not sent.ask.other:
        return
    if full:
        yield from itertools.product(defects.DEFECTS, defects.OF_EXTENSIONS)
        return
    yield from ((defect, "good") for defect in defects.DEFECTS)
    yield from (("good", extension) for extension in defects.OF_EXTENSIONS)


def try_shape(
    t: Estate, tally: Tally, shape: cases.Shape, pid: int, method: int, full: bool
) -> None:
    """One shape under all capabilities of a method; of a method that is too weak, under some."""
    tally.controls.setdefault(shape.name, False)
    trial = Trial(t, tally, shape, pid, method)
    chosen = [*pairs_of_defects(shape.make(t, pid), method, full)]
    if not full and method < t.model.policy(pid).method:
        chosen = chosen[::SOME_OF_WEAK]
    for defect, extension in chosen:
        trial.run(defect, extension)


def methods_for(shape: cases.Shape, full: bool) -> list[tuple[int, int]]:
    """All pairs of methods; a request varied by attributes has one with and one without a capability."""
    if full or "[" not in shape.name:
        return PAIRS
    enough = [(least, method) for least, method in PAIRS if method and method >= least]
    return [(0, 0), enough[zlib.crc32(shape.name.encode()) % len(enough)]]


pytestmark = pytest.mark.timeout(LONGEST_S)


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rights-matrix") == "full")


def test_commands_on_partitions(estate: Estate, full: bool) -> None:
    tally = Tally()
    addressed = [estate.add_partition(method) for method in METHODS]
    seconds = [estate.add_partition(method) for method in METHODS]
    for shape in cases.shapes_of_partitions(seconds):
        for least, method in methods_for(shape, full):
            try_shape(estate, tally, shape, addressed[least], method, full)
    tally.check()


def test_commands_on_the_root(estate: Estate, full: bool) -> None:
    tally = Tally()
    for shape in cases.shapes_of_root():
        for least, method in methods_for(shape, full):
            estate.demand(0, least)
            try_shape(estate, tally, shape, 0, method, full)
    tally.check()
