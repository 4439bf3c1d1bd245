# SPDX-License-Identifier: GPL-2.0-or-later
"""Times at which jobs begin, as people write them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyosd.jobs.begin import parse_begin

NOON = datetime(2026, 11, 23, 12, 0, 0)  # local time
NOW = NOON.timestamp()


def at(*fields: int) -> int:
    return round(datetime(*fields).timestamp() * 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", round(NOW * 1000)),
        ("now+2h", at(2026, 11, 23, 14)),
        ("now+1h30m", at(2026, 11, 23, 13, 30)),
        ("16:30", at(2026, 11, 23, 16, 30)),
        ("16:30:05", at(2026, 11, 23, 16, 30, 5)),
        ("12:00", at(2026, 11, 24, 12)),
        ("8:15", at(2026, 11, 24, 8, 15)),
        ("2026-12-01", at(2026, 12, 1)),
        ("2026-12-01T08:00", at(2026, 12, 1, 8)),
        ("2026-12-01T08:00Z", round(datetime(2026, 12, 1, 8, tzinfo=UTC).timestamp() * 1000)),
    ],
)
def test_text(text: str, expected: int) -> None:
    assert parse_begin(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "now-2h", "now+", "now+soon", "24:00", "12:60", "1e9", "2026-13-01"]
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time to begin|cannot read duration"):
        parse_begin(text, NOW)


def test_values() -> None:
    assert parse_begin(NOON) == round(NOW * 1000)
    assert parse_begin(NOON.astimezone(UTC)) == round(NOW * 1000)
    assert parse_begin(NOW + 0.25) == round(NOW * 1000) + 250
    for wrong in (0, -1.0, 1e300, float("nan")):
        with pytest.raises(ValueError, match="not a time at which"):
            parse_begin(wrong)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.times())
def test_the_next_time_of_day(now: datetime, wanted: object) -> None:
    text = f"{wanted:%H:%M:%S}"
    found = datetime.fromtimestamp(parse_begin(text, now.timestamp()) / 1000)
    assert f"{found:%H:%M:%S}" == text or found.dst() is not None
    assert timedelta(0) < found - now <= timedelta(days=1, hours=1)


@given(st.text(st.sampled_from("now+-:T0123456789hmsZ "), max_size=20))
def test_any_text(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 < parse_begin(text, NOW) < 1 << 48
