# SPDX-License-Identifier: GPL-2.0-or-later
"""The new part of a job's standard error, if only its beginning and its end are kept."""

from __future__ import annotations

import pytest

from pyosd.jobs.dialogues.stderr import HEAD, unseen

TAIL = 40 << 10


def kept(text: bytes) -> bytes:
    """The attribute of a job that has written this."""
    some = text if len(text) <= HEAD + TAIL else text[:HEAD] + text[-TAIL:]
    return len(text).to_bytes(8, "big") + some


@pytest.mark.parametrize("total", [1, HEAD, HEAD + 1, HEAD + TAIL, HEAD + TAIL + 1, 250_007])
def test_from_anywhere(total: int) -> None:
    """Each byte that is kept is shown once; a line stands for the others, and says how many."""
    text = bytes(n % 251 for n in range(total))
    lost = range(HEAD, max(HEAD, total - TAIL))
    for at in {0, 1, HEAD - 1, HEAD, HEAD + 1, lost.stop - 1, lost.stop, total - 1, total}:
        if not 0 <= at <= total:
            continue
        missing = len(range(max(at, lost.start), lost.stop))
        expected = text[at:]
        if missing:
            line = f"[{missing} bytes were not kept]\n".encode()
            expected = text[at:HEAD] + line + text[lost.stop :]
        assert unseen(kept(text), at) == (total, expected), at


def test_nothing() -> None:
    assert unseen(b"", 0) == (0, b"")
    assert unseen(b"", 7) == (7, b""), "another attempt begins anew"
