# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers that are well formed and cannot be true: the client ends with an exception, and keeps within
bounds that a target does not set.

Not here: what breaks the protocol (test_hostile_target.py).
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyosd import errors
from pyosd.cli.output.tables import format_time
from pyosd.commands import attributes, collections, names
from pyosd.fs import transfer
from pyosd.functions import results
from pyosd.jobs.dialogues import following, origins
from pyosd.types import AttributeId, AttributeValue, ref
from pyosd.wire.attributes import Page, Retrieved
from pyosd.wire.indices import MOST
from pyosd.wire.job_status import JobFlag, JobState, JobStatus, Number, decode_status
from pyosd.wire.names import decode_names
from pyosd.wire.used import PIECE

PARTITION, OBJECT = ref(0x10000), ref(0x10000, 0x10001)
WANTED = AttributeId(0x10000, 1)
_HEAD, _ENTRY = struct.Struct(">IB3x"), struct.Struct(">QBxIHQQQ12sI")


def answered(dialogue: Any) -> Any:
    """The end of a dialogue that sends nothing, because its commands are answered here."""
    with pytest.raises(StopIteration) as caught:
        next(dialogue)
    return caught.value.value


def reply(value: object) -> Any:
    """In place of a function that sends a command."""

    def send(*_: object, **__: object) -> Generator[Any, Any, Any]:
        yield from ()
        return value

    return send


@pytest.mark.parametrize("needed", [(64 << 20) + 1, (1 << 31) - 1, (1 << 32) + 7])
def test_attributes_for_which_there_is_no_memory(
    monkeypatch: pytest.MonkeyPatch, needed: int
) -> None:
    lie = SimpleNamespace(retrieved=Retrieved(needed=needed, complete=False))
    for module, send in ((attributes, "call"), (collections, "call_again")):
        monkeypatch.setattr(module, send, reply(lie))
    for dialogue in (
        attributes.get_attributes(OBJECT, [WANTED]),
        attributes.swap_attribute(OBJECT, WANTED, b"", b"new"),
        collections.get_member_attributes(OBJECT, [WANTED]),
    ):
        with pytest.raises(errors.ProtocolError, match=str(needed)):
            answered(dialogue)


def listed(name: bytes, modified_ms: int = 0, more: bool = True) -> bytes:
    """A list with one name."""
    head = _ENTRY.pack(0x10001, 0x80, 1, len(name), 0, 0, modified_ms, bytes(12), 0)
    return _HEAD.pack(1, more) + head + name + bytes(-len(name) % 8)


def test_a_list_of_names_that_goes_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "call", reply(SimpleNamespace(data=listed(b"b"), padded=False)))
    assert answered(names.list_names(PARTITION, after=b"a")).more
    for after in (b"b", b"c"):
        with pytest.raises(errors.ProtocolError, match="does not go on"):
            answered(names.list_names(PARTITION, after=after))


def test_a_file_that_is_stored_as_no_object(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"x")
    monkeypatch.setattr(transfer, "start", reply(None))
    monkeypatch.setattr(transfer, "finish", reply(SimpleNamespace(error=None, data=b"short")))
    monkeypatch.setattr(transfer, "blocking_call", lambda function: reply(function())())
    with pytest.raises(errors.ProtocolError):
        answered(transfer.put_files(PARTITION, [transfer.Outgoing(tmp_path / "f", b"f")]))


def test_times_that_no_file_can_have() -> None:
    assert (
        decode_names(listed(b"a", (1 << 48) - 1), 0x10000).entries[0].modified_ms == (1 << 48) - 1
    )
    with pytest.raises(ValueError, match="48 bits"):
        decode_names(listed(b"a", 1 << 48), 0x10000)


def status_of(**values: bytes) -> JobStatus:
    """A job whose record has these numbers."""
    values = {"STATE": bytes([JobState.COMPLETED])} | values
    found = decode_status(
        OBJECT,
        [AttributeValue(Page.JOB_STATUS, Number[name], value) for name, value in values.items()],
    )
    assert found is not None
    return found


def test_a_job_that_ends_after_the_last_date() -> None:
    ended = status_of(ENDED=b"\xff" * 8).ended
    assert ended is not None
    assert ended.astimezone().astimezone(UTC) == ended


def test_times_are_printed_that_no_date_can_have() -> None:
    for milliseconds in ((1 << 48) - 1, (1 << 64) - 1):
        assert format_time(milliseconds).startswith("6429-10-1")


@pytest.mark.parametrize("members", [MOST, MOST + 1, (1 << 32) - 1])
def test_an_array_that_nobody_can_have_submitted(members: int) -> None:
    place = status_of(ARRAY=struct.pack(">QIII", OBJECT.object_id, 0, members, 0)).array
    assert (place is not None) == (members <= MOST)


def test_a_result_that_no_job_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = status_of(RESULT_LENGTH=(1 << 33).to_bytes(8), RESULT_OBJECT=(7).to_bytes(8))
    monkeypatch.setattr(following, "get_attributes", reply(()))
    monkeypatch.setattr(following, "decode_status", lambda *_: ended)
    monkeypatch.setattr(following, "read_range", lambda *_: pytest.fail("it is read"))
    job: Any = SimpleNamespace(id=OBJECT, final=None, see=lambda _: None, cached_result=False)
    with pytest.raises(errors.ProtocolError, match=str(1 << 33)):
        answered(following.status(job))


def test_inputs_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "get_attribute", reply(bytes(PIECE)))
    final = JobStatus(OBJECT, JobState.COMPLETED, flags=JobFlag.LISTED)
    job: Any = SimpleNamespace(id=OBJECT, final=final)
    with pytest.raises(errors.ProtocolError, match="does not end"):
        answered(origins.used(job))


def test_the_origin_of_data_that_is_nested_too_deep() -> None:
    with pytest.raises(errors.ProtocolError, match="cannot be read"):
        results.decode(b"[" * 100_000)
