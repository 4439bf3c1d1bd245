# SPDX-License-Identifier: GPL-2.0-or-later
"""A real browser without a screen: Debian's chromium, driven by selenium."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

__all__ = ["Page", "browsing", "missing"]

T = TypeVar("T")
DEADLINE_S = 60.0
PHONE_MOST = 1800
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # the tests run as root, and the page is ours
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-first-run",
)


def missing() -> str | None:
    """Why there is no browser here; None: there is."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed (packages.txt)"
    return None


class Page:
    """A page in a browser."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Load it, and forget what was logged before."""
        self.driver.delete_all_cookies()
        self.errors()
        self.driver.get(url)

    def forget(self, url: str) -> None:
        """Leave the page, and empty what this site has stored."""
        self.driver.get("about:blank")
        where = {"origin": url.rstrip("/"), "storageTypes": "cookies,local_storage"}
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", where)

    def run(self, script: str, *values: object) -> Any:
        """The value that the body of a function returns in the page."""
        return self.driver.execute_script(script, *values)

    def fetch(self, path: str, **how: object) -> int:
        """Status of a request that the page makes itself."""
        script = """
            const [path, how, done] = arguments;
            fetch(path, how).then((answer) => done(answer.status), (error) => done(String(error)));
        """
        return int(self.driver.execute_async_script(script, path, how))

    def until(self, condition: Callable[[], T], what: str = "") -> T:
        """The value of the condition as soon as it is true."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                found = condition()
            except (JavascriptException, WebDriverException):
                found = None
            if found:
                return found
            assert time.monotonic() < deadline, f"never: {what}\n{self.text('body')[:2000]}"
            time.sleep(0.05)

    def find(self, selector: str) -> WebElement:
        """The element; waits for it."""
        return self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, selector), selector)

    def text(self, selector: str) -> str:
        """The visible text."""
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def click(self, selector: str) -> None:
        """Press a button that can be pressed."""
        self.until(lambda: self.find(selector).is_displayed(), selector)
        self.find(selector).click()

    def type(self, selector: str, text: str) -> None:
        """Into a field."""
        self.find(selector).clear()
        self.find(selector).send_keys(text)

    def errors(self) -> list[str]:
        """Complaints of the browser since the last call."""
        return [
            row["message"]
            for row in self.driver.get_log("browser")  # type: ignore[no-untyped-call]
            if row["level"] in ("SEVERE", "WARNING")
        ]

    def look(self, width: int, scheme: str, phone: bool) -> bytes:
        """A picture of the page, as PNG: the whole of it at a desk, a few screens of it on a phone."""

        def size(height: int) -> None:
            self.driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone},
            )

        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size(900)
        whole = int(self.run("return document.documentElement.scrollHeight"))
        size(min(whole, PHONE_MOST) if phone else whole)
        return bytes(self.driver.get_screenshot_as_png())


@contextmanager
def browsing() -> Iterator[Page]:
    """A browser for many tests."""
    options = webdriver.ChromeOptions()
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = str(shutil.which("chromium"))
    driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    driver.set_script_timeout(DEADLINE_S)
    try:
        yield Page(driver)
    finally:
        driver.quit()
