# SPDX-License-Identifier: GPL-2.0-or-later
"""How the security manager refuses a request: a code for programs and a sentence for people."""

from __future__ import annotations

__all__ = ["STATUS", "Refusal"]

STATUS = {
    "bad-request": 400,
    "unauthenticated": 401,
    "not-permitted": 403,
    "absent": 404,
    "conflict": 409,
    "too-soon": 409,
    "too-many": 429,
    "internal": 500,
    "target-unreachable": 502,
    "not-ready": 503,
}
"""Code -> HTTP status."""


class Refusal(Exception):
    """A request that is not done.  code: one of STATUS."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def status(self) -> int:
        """Of HTTP."""
        return STATUS[self.code]
