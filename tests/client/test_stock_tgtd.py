# SPDX-License-Identifier: GPL-2.0-or-later
"""The initiator against the distribution's tgtd and its own file-backed disk, with short CDBs."""

from __future__ import annotations

import asyncio
import os
import re
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd import Chap, LoginRejected, SessionLost, Unreachable, aio, connect, discover
from pyosd.iscsi.session import TaskFunction, default_initiator_name
from pyosd.wire.transport import Command
from tests.client.stock_tgtd import NAME, StockTgtd

pytestmark = pytest.mark.tgtd

DISK_BYTES = 64 << 20
BLOCK = 512
UNIT = 1


def read_10(block: int, count: int) -> bytes:
    return struct.pack(">BxIxHx", 0x28, block, count)


def write_10(block: int, count: int) -> bytes:
    return struct.pack(">BxIxHx", 0x2A, block, count)


@pytest.fixture
def tgtd(tmp_path: Path) -> Iterator[StockTgtd]:
    target = StockTgtd(tmp_path)
    disk = tmp_path / "disk"
    disk.touch()
    os.truncate(disk, DISK_BYTES)
    target.add_unit(UNIT, disk)
    target.bind()
    yield target
    target.stop()


def test_identity_and_ping(tgtd: StockTgtd) -> None:
    with connect(tgtd.url(UNIT)) as target:
        target.test_unit_ready()
        assert target.inquiry()[8:16] == b"IET     "
        assert target.ping() > 0


def test_discovery(tgtd: StockTgtd) -> None:
    assert discover("127.0.0.1", tgtd.port) == [(NAME, [f"127.0.0.1:{tgtd.port},1"])]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("size", [512, 4096, 65536, 1 << 20, 5 << 20])
def test_data_both_ways(tgtd: StockTgtd, large: bool, size: int) -> None:
    if large:
        tgtd.large_transfers()
    data = os.urandom(size)
    with connect(tgtd.url(UNIT)) as target:
        agreed = target.transport._connection.negotiated  # type: ignore[attr-defined]
        assert agreed.initial_r2t is not large
        assert target.execute(write_10(8, size // BLOCK), data).status == 0
        buffer = bytearray(size)
        command = Command(read_10(8, size // BLOCK), b"", size, buffer)
        response = target.transport.execute(command)
        assert response.status == 0 and response.residual_in == 0
        assert buffer == data
        assert target.bytes_sent > size and target.bytes_received > size
    stored = (tgtd.folder / "disk").read_bytes()[8 * BLOCK :][:size]
    assert stored == data


@pytest.mark.parametrize("params", [{}, {"MaxBurstLength": 4096, "FirstBurstLength": 1024}])
@pytest.mark.parametrize("immediate", ["Yes", "No"])
@pytest.mark.parametrize("initial_r2t", ["Yes", "No"])
def test_every_way_to_ask_for_data(
    tgtd: StockTgtd, params: dict[str, int], immediate: str, initial_r2t: str
) -> None:
    tgtd.parameters(ImmediateData=immediate, InitialR2T=initial_r2t, **params)
    data = os.urandom(200 * BLOCK)
    with connect(tgtd.url(UNIT)) as target:
        assert target.execute(write_10(0, 200), data).status == 0
        assert target.execute(read_10(0, 200), b"", len(data)).data_in == data


def test_residuals_and_sense(tgtd: StockTgtd) -> None:
    with connect(tgtd.url(UNIT)) as target:
        response = target.execute(read_10(0, 2), b"", 4096)
        assert response.status == 0 and response.residual_in == 3072
        assert len(response.data_in) == 1024
        beyond = target.execute(read_10(DISK_BYTES // BLOCK, 1), b"", BLOCK)
        assert beyond.status == 2 and beyond.sense[2] & 0x0F == 5


def test_header_digest(tgtd: StockTgtd) -> None:
    tgtd.parameters(HeaderDigest="CRC32C")
    data = os.urandom(1 << 20)
    with connect(tgtd.url(UNIT), header_digest=True) as target:
        agreed = target.transport._connection.negotiated  # type: ignore[attr-defined]
        assert agreed.header_digest
        assert target.execute(write_10(0, 2048), data).status == 0
        assert target.execute(read_10(0, 2048), b"", len(data)).data_in == data


def test_header_digest_that_the_target_does_not_do(tgtd: StockTgtd) -> None:
    """A session that was to have digests is never one without."""
    tgtd.parameters(HeaderDigest="None")
    with pytest.raises(LoginRejected, match="header digests"):
        connect(tgtd.url(UNIT), header_digest=True)
    with connect(tgtd.url(UNIT)) as target:
        target.test_unit_ready()


def test_chap(tgtd: StockTgtd) -> None:
    tgtd.account("ada", "correct horse battery")
    with connect(tgtd.url(UNIT, "ada%correct%20horse%20battery@")) as target:
        target.test_unit_ready()
    with pytest.raises(LoginRejected):
        connect(tgtd.url(UNIT, "ada%wrong@"))
    with pytest.raises(LoginRejected, match="asks for a name and a secret"):
        connect(tgtd.url(UNIT))


def test_chap_both_ways(tgtd: StockTgtd) -> None:
    tgtd.account("ada", "correct horse battery")
    tgtd.account("target", "the other secret", outgoing=True)
    mutual = Chap("ada", "correct horse battery", "target", "the other secret")
    with connect(tgtd.url(UNIT), chap=mutual) as target:
        target.test_unit_ready()
    imposter = Chap("ada", "correct horse battery", "target", "not this secret")
    with pytest.raises(LoginRejected, match="could not prove"):
        connect(tgtd.url(UNIT), chap=imposter)


def test_wrong_target_and_unit(tgtd: StockTgtd) -> None:
    with pytest.raises(LoginRejected):
        connect(tgtd.url(UNIT).replace(":test", ":nobody"))
    with connect(tgtd.url(77)) as target:
        assert target.execute(bytes(6)).status == 2


def test_many_commands_from_many_threads(tgtd: StockTgtd) -> None:
    disk = memoryview(os.urandom(1 << 20) * (DISK_BYTES >> 20))
    with (tgtd.folder / "disk").open("r+b") as file:
        file.write(disk)
    wrong: list[int] = []

    with connect(tgtd.url(UNIT)) as target:

        def work(seed: int) -> None:
            for index in range(100):
                block = (seed * 7919 + index * 104729) % (DISK_BYTES // BLOCK - 64)
                data = target.execute(read_10(block, 64), b"", 64 * BLOCK).data_in
                if data != disk[block * BLOCK :][: 64 * BLOCK]:
                    wrong.append(block)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
    assert not wrong


def test_more_under_way_than_the_window(tgtd: StockTgtd) -> None:
    with connect(tgtd.url(UNIT)) as target:
        pending = [
            target.transport.submit(Command(read_10(index, 8), b"", 4096)) for index in range(600)
        ]
        assert all(each.result(30).status == 0 for each in pending)


def test_more_under_way_than_the_core_can_hold(tgtd: StockTgtd) -> None:
    with connect(tgtd.url(UNIT)) as target:
        target.test_unit_ready()
        pending = [target.transport.submit(Command(bytes(6))) for _ in range(3000)]
        assert all(each.result(30).status == 0 for each in pending)


def test_many_coroutines(tgtd: StockTgtd) -> None:
    async def main() -> None:
        async with aio.connect(tgtd.url(UNIT)) as target:
            await target.execute(bytes(6))
            calls = (target.execute(read_10(n % 64, 1), b"", BLOCK) for n in range(2000))
            responses = await asyncio.gather(*calls)
            assert all(each.status == 0 and len(each.data_in) == BLOCK for each in responses)

    asyncio.run(main())


def test_reads_and_writes_that_fill_both_directions(tgtd: StockTgtd) -> None:
    """A client that would not read while it writes deadlocks here with tgtd 1.0.85."""
    tgtd.large_transfers()
    size = 8 << 20
    data = bytes(size)
    with connect(tgtd.url(UNIT)) as target:
        submit = target.transport.submit
        pending = [submit(Command(read_10(0, size // BLOCK), b"", size)) for _ in range(6)]
        pending += [submit(Command(write_10(0, size // BLOCK), data)) for _ in range(6)]
        assert all(each.result(60).status == 0 for each in pending)


def test_task_management(tgtd: StockTgtd) -> None:
    with connect(tgtd.url(UNIT)) as target:
        transport = target.transport
        assert target.manage_tasks(TaskFunction.LOGICAL_UNIT_RESET) == 0
        target.test_unit_ready()
        pending = transport.submit(Command(bytes(6)))
        pending.result()
        assert pending.abort() == 1  # type: ignore[attr-defined]


def test_connection_cut_and_made_anew(tgtd: StockTgtd) -> None:
    with connect(tgtd.url(UNIT)) as target:
        before = target.execute(read_10(0, 8), b"", 4096).data_in
        target.transport.drop()  # type: ignore[attr-defined]
        assert target.execute(read_10(0, 8), b"", 4096).data_in == before


def test_initiator_name_is_well_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IOSD_INITIATOR", raising=False)
    assert re.fullmatch(r"iqn\.\d{4}-\d\d\.[a-z0-9.-]+:[a-z0-9.-]+", default_initiator_name())


def test_target_killed(tgtd: StockTgtd) -> None:
    with connect(tgtd.url(UNIT), reconnect_timeout=0.1) as target:
        tgtd.process.kill()
        tgtd.process.wait()
        with pytest.raises((SessionLost, Unreachable)):
            target.execute(write_10(0, 1), bytes(BLOCK))
        with pytest.raises(Unreachable, match="cannot connect"):
            target.test_unit_ready()
