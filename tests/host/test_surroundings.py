# SPDX-License-Identifier: GPL-2.0-or-later
"""The environment of the start must not affect a target."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.machine import unavailable
from tests.serving import Serving, arguments, missing, sandboxes_missing

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


@pytest.fixture
def private() -> Iterator[None]:
    """A umask that keeps all others out."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("private")
def test_umask() -> None:
    """Its parts run as users of their own, who read what is made for them."""
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with Serving(*arguments(), manager=True) as served, served.connect() as target:
        zone = target.partition(target.create_partition())
        assert target.exec("import osd; osd.result(6 * 7)", zone=zone).result(30) == 42
