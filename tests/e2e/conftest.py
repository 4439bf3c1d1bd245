# SPDX-License-Identifier: GPL-2.0-or-later
"""The fixture of tests that do the same to a stock and to the hardened tgtd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iosd_host.common import paths
from iosd_host.serve.tgtd import find_tgtd
from tests.e2e.trial import Trial
from tests.machine import unavailable
from tests.serving import missing


@pytest.fixture(params=["hardened", "stock"])
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    try:
        tgtd = find_tgtd(request.param)
    except paths.MissingComponent as error:
        pytest.skip(str(error))
    if request.param == "stock" and tgtd.hardened:
        pytest.skip("the distribution's tgtd is one of ours")
    found = Trial(tgtd)
    with found.stack:
        yield found
