# SPDX-License-Identifier: GPL-2.0-or-later
"""What others' servers are measured with: they answer as their clients here expect, and one that is absent
is said to be.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import peer_http, peer_redis, servers
from bench.peer_redis import LUA_DIGEST, Redis
from bench.plan import QUICK
from examples.demo import generate

LINES = 2000
SHA1_OF_A = b"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"


def test_absent_server_is_said_to_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(servers, "UNPACKED", tmp_path)
    monkeypatch.setattr("shutil.which", lambda *_args, **_more: None)
    rows = list(peer_redis.rows(QUICK))
    assert [row.id for row in rows] == [
        *("exec_vs_redis", "reuse_vs_redis", "set_vs_redis", "get_vs_redis")
    ]
    assert all("apt-get install redis-server" in row.reason for row in rows)
    with pytest.raises(servers.Absent, match="nginx"), servers.nginx(tmp_path, "127.0.0.1"):
        pass


def test_redis_answers() -> None:
    try:
        with servers.redis() as connection:
            peer = Redis(connection)
            assert peer.call(b"SET", b"k", b"a") == b"OK"
            assert peer.call(b"GET", b"k") == b"a"
            assert peer.call(b"EVAL", LUA_DIGEST, b"1", b"k") == SHA1_OF_A
            assert peer.per_second(0.01, b"EVAL", b"return 1", b"0") > 0
            with pytest.raises(RuntimeError, match="WRONGTYPE"):
                peer.call(b"LPUSH", b"k", b"a")
    except servers.Absent as absent:
        pytest.skip(str(absent))


def test_nginx_serves_the_log(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "log").write_bytes(bytes(range(256)) * 8192)
    try:
        with servers.nginx(tmp_path, "127.0.0.1") as address:
            assert peer_http.fetch(address, tmp_path / "got") == 2 << 20
    except servers.Absent as absent:
        pytest.skip(str(absent))
    assert (tmp_path / "got").read_bytes() == (tmp_path / "log").read_bytes()


def test_the_demo_script_computes_over_a_file(tmp_path: Path) -> None:
    """Each line of the answer counts something; calls of all kinds are as many as of all users."""
    generate.write_log(tmp_path / "log", LINES)
    counts: dict[str, int] = {}
    for line in peer_http.compute(tmp_path / "log").decode().splitlines():
        what, _key, count = line.split()
        counts[what] = counts.get(what, 0) + int(count)
    assert len(counts) == 2
    assert len(set(counts.values())) == 1
