# SPDX-License-Identifier: GPL-2.0-or-later
"""One browser, and one target with its manager and console, for all of this folder's tests."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iosd_host.common import places
from tests.console.browser import Page, browsing, missing
from tests.machine import unavailable
from tests.processes import children_of_this, long_lived
from tests.serving import Serving, arguments
from tests.serving import missing as tgtd_missing

CONFIG = """
[manager]
http = "127.0.0.1:0"
[manager.scale]
interval = "500ms"
[pools.default]
max = 3
min = 1
[pools.second]
max = 1
"""


@dataclass(frozen=True)
class Observed:
    """A target and where it can be looked at."""

    served: Serving
    url: str
    token: str

    def get(self, path: str) -> tuple[bytes, dict[str, str]]:
        """Body and headers."""
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read(), dict(answer.headers)

    def state(self) -> dict[str, Any]:
        """The present message to a page."""
        with urllib.request.urlopen(self.url + "api/events", timeout=60) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    return dict(json.loads(line.removeprefix(b"data: ")))
        raise AssertionError("no state")


def find_manager(served: Serving) -> dict[str, Any]:
    """The address that it announces."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for fields in places.running(places.MANAGER):
            if fields["pid"] in served.everything() and fields.get("http"):
                return dict(fields)
        time.sleep(0.05)
    raise AssertionError(f"no manager with a console:\n{served.text()[-3000:]}")


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """A target with sandboxes, served as people serve it."""
    why = tgtd_missing()
    if why:
        unavailable("tgtd", why)
    config = tmp_path_factory.mktemp("console") / "iosd.toml"
    config.write_text(CONFIG)
    with Serving(*arguments(["--config", str(config)]), manager=True) as served:
        long_lived.add(served.process.pid)
        found = find_manager(served)
        tokens = Path(found["key_file"]).parent / "console.tokens"
        yield Observed(served, found["http"], tokens.read_text().split()[1])
    long_lived.discard(served.process.pid)


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """Started once; its start is most of what these tests take.  It ends with them: a page that is shown
    costs the processor time that other tests wait for."""
    why = missing()
    if why:
        unavailable("browser", why)
    before = children_of_this()
    with browsing() as page:
        started = children_of_this() - before
        long_lived.update(started)
        yield page
    long_lived.difference_update(started)


@pytest.fixture
def page(browser: Page, observed: Observed) -> Iterator[Page]:
    """The console; a test during which the browser complained fails."""
    browser.forget(observed.url)
    browser.open(observed.url)
    browser.until(lambda: browser.text("#serial"), "a reading")
    yield browser
    assert not browser.errors()
