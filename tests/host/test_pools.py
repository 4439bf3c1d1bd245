# SPDX-License-Identifier: GPL-2.0-or-later
"""Configuration of pools: what files and flags may say, and what is told to those who serve."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli.config import build, check, show
from iosd_host.config.files import load
from iosd_host.config.live_keys import check_words, frame_words
from iosd_host.config.pools import LIMIT_KEYS, POOL_KEYS, SCALE_KEYS, make_pool, parse_flag
from iosd_host.config.schema import ConfigError, Size
from tests.harness import SOURCE
from tests.package_sets import make

MIB = 1 << 20
FILE = """
[target]
portal = "127.0.0.1:0"
memory_budget = "2GiB"
package_sets = "{sets}"
[pools.default]
max = 2
reuse = "verified"
[pools.tools]
packages = "tools"
preload = ["greeting"]
max = 3
[pools.tools.limits]
mem = "300MiB"
wall = "1.5min"
[pools.tools.maximum]
mem = "0.5GiB"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration with a package set that is there."""
    sets = tmp_path / "sets"
    sets.mkdir()
    make("tools", sets, {"greeting.py": ""}, "greeting")
    path = tmp_path / "iosd.toml"
    path.write_text(FILE.format(sets=sets))
    return path


def test_a_pool_has_a_slot_for_each_processor_that_may_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host has more of them than a container or taskset(1) gives the target."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert ";max=3;" in make_pool("default", [], Path()).line()


def test_what_is_told(file: Path) -> None:
    config = load(file)
    assert config.target["portal"].value == "127.0.0.1:0"
    assert config.memory_budget == 2048 * MIB
    default, tools = config.pools
    assert default.line() == (
        "name=default;engine=python;max=2;min=1;warm_spare=3;queue=10000;reuse=verified;"
        "idle_timeout=300000000;max_jobs_per_sandbox=1000;wall=60000000;"
        f"wall_max=86400000000;cpu_max=86400000000;memory={256 * MIB};memory_max={256 * MIB};"
        f"threads=1;threads_max=16;output={64 * MIB};output_max={1024 * MIB}"
    )
    assert tools.package_set is not None
    assert ";wall=90000000;" in tools.line()
    assert f";memory={300 * MIB};memory_max={512 * MIB};" in tools.line()
    where = f";set={tools.package_set.id};packages={tools.package_set.folder};preload=greeting;"
    assert where in tools.line()


def test_a_share_of_the_host(tmp_path: Path) -> None:
    path = tmp_path / "iosd.toml"
    path.write_text("[pools.default.share]\ncpu = 50\nbandwidth = '10MiB'\ndeadline = '30s'")
    (default,) = load(path).pools
    assert f";cpu_share=50;bandwidth={10 * MIB};deadline=30000000;" in default.line()
    words = check_words({"share.cpu": "20", "share.bandwidth": "0", "share.deadline": "1m"})
    assert frame_words({key: each.value for key, each in words.items()}) == {
        "cpu_share": "20",
        "bandwidth": "0",
        "deadline": "60000000",
    }
    for wrong in ("share.cpu=0", "share.cpu=101", "share.deadline=2d", "share.bandwidth=fast"):
        key, _, value = wrong.partition("=")
        with pytest.raises(ConfigError, match=key):
            check_words({key: value})


def test_any_pool_preloads_modules_of_the_standard_library(tmp_path: Path) -> None:
    path = tmp_path / "iosd.toml"
    path.write_text("[pools.default]\npreload = ['sqlite3', 'ctypes.util']")
    (default,) = load(path).pools
    assert ";preload=sqlite3,ctypes.util;" in default.line()


def test_later_words_win(file: Path) -> None:
    folder = file.parent / "pools.d"
    folder.mkdir()
    (folder / "tools.toml").write_text("[pool]\nmax = 1\n[pool.limits]\nwall = '2s'\n")
    (folder / "new.toml").write_text("[pool]\nmax = 1\nmin = 0\n")
    flag = ("--pool tools:limits.wall=3s", *parse_flag("tools:limits.wall=3s"))
    default, tools, new = load(file, [flag]).pools
    assert (tools["max"], tools["limits.wall"], tools["limits.mem"]) == (1, 3_000_000, 300 * MIB)
    origins = {
        key: tools.settings[key].origin for key in ("max", "limits.wall", "limits.mem", "min")
    }
    assert origins == {
        "max": str(folder / "tools.toml"),
        "limits.wall": "--pool tools:limits.wall=3s",
        "limits.mem": str(file),
        "min": "default",
    }
    assert (new.name, new["min"], new["warm_spare"]) == ("new", 0, 2)
    assert default["max"] == 2


WRONG = [
    ("[pool.default]\nmax = 1", "no such table: 'pool'; did you mean 'pools'?"),
    ("[target]\nportl = '1'", "no such key in [target]: 'portl'; did you mean 'portal'?"),
    ("[pools.a]\nmaxx = 1", "no such key in [pools.a]: 'maxx'; did you mean 'max'?"),
    ("[pools.a.limit]\nmem = '1GiB'", "'limit'; did you mean 'limits'?"),
    (
        "[pools.a.limits]\nmen = '1GiB'",
        "no such key in [pools.a.limits]: 'men'; did you mean 'mem'?",
    ),
    ("[pools.a]\nmax = 0", "[pools.a] max must be a whole number from 1 to 64"),
    ("[pools.a]\nmax = true", "max must be a whole number"),
    ("[pools.a]\nmax = 2\nmin = 3", "pool 'a': min is above max"),
    (
        "[pools.a]\nengine = 'native'\nreuse = 'trusted'",
        "pool 'a': the engine native has no reuse",
    ),
    ('[pools.a]\nengine = "java"\nreuse = "verified"', "the engine java has no reuse"),
    ('[pools.a]\nengine = "java"\n[pools.a.limits]\nmem = "64MiB"', "is below 128 MiB"),
    ("[pools.a]\nreuse = 'trust'", "reuse must be one of never, verified, trusted; did you mean"),
    ("[pools.a]\npreload = ['x']", "pool 'a': 'x' of preload is no module of the standard library"),
    ("[pools.a]\npreload = ['os;max=9']", "pool 'a': 'os;max=9' may hold no ';'"),
    ("[pools.a.limits]\nmem = '1 MB'", 'mem must be a size with a unit, like "256MiB"'),
    ("[pools.a.limits]\nmem = '1MiB'", "from 32MiB to"),
    ("[pools.a.limits]\nwall = '2d'", 'wall must be a time with a unit, like "30s"'),
    ("[pools.a]\n[pools.a.limits]\nwall='2s'\n[pools.a.maximum]\nwall='1s'", "above maximum.wall"),
    ("[pools.'a b']\nmax = 1", "'a b' is no name for a pool"),
    ("pools = 3", "[pools] is not a table"),
    ("[pools.a]\nmax = 40\n[pools.b]\nmax = 40", "slots together, at most 64 can be"),
    ("= 3", "Invalid statement"),
    (
        "[manager]\nlisten = 'tcp://[::1]:*'\nstat = 'x'",
        "no such key in [manager]: 'stat'; did you mean",
    ),
    ("[manager.workers]\nmin = 9\nmax = 8", "[manager.workers] min is above max"),
    ("[target]\nportal = '127.0.0.1:99999'", "portal must be an IP address and a port"),
    ("[target]\nallow = ['10.0.0.0/33']", "allow must be a list of addresses and networks"),
    ("[target]\nportal = 'here'", "portal must be an IP address and a port"),
    ("[manager]\nhttp = '8470'", "http must be an IP address and a port"),
    ("[manager]\nlisten = ['tcp://foo']", "listen must be a list of"),
    ("[manager]\nlisten = ['http://[::1]:80']", "listen must be a list of"),
    ("[manager.scale]\nup_factor = 1", "up_factor must be a number from 1.01 to 64"),
    ("[pools.a.scale]\nauto = 1", "auto must be true or false"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_mistakes_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "iosd.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load(path)
    assert words in str(error.value) and ("slots" in words or str(path) in str(error.value))


def test_more_memory_than_the_budget(file: Path) -> None:
    """Reliability 39: refused with the numbers."""
    file.write_text(file.read_text().replace("2GiB", "2047MiB"))
    with pytest.raises(ConfigError) as error:
        load(file)
    assert str(error.value).startswith(
        "pools may need 2048 MiB, the budget is 2047 MiB: default 2 x 256 MiB, tools 3 x 512 MiB"
    )
    refused = CliRunner().invoke(check, [str(file)])
    assert refused.exit_code == 78 and "the budget is 2047 MiB" in refused.output


def test_scale_of_all_pools_and_of_one(file: Path) -> None:
    file.write_text(
        file.read_text()
        + "[pools.tools.scale]\ncooldown = '9s'\nauto = false\n"
        + "[manager]\nhttp = '127.0.0.1:0'\n"
        + "[manager.workers]\nmax = 1\n[manager.scale]\ncooldown = '2s'\nup_factor = 1.5\n"
    )
    config = load(file)
    default, tools = config.pools
    assert (default["scale.cooldown"], tools["scale.cooldown"]) == (2_000_000, 9_000_000)
    assert (default["scale.auto"], tools["scale.auto"]) == (True, False)
    assert tools["scale.up_factor"] == 1.5 and default["scale.interval"] == 1_000_000
    assert default.settings["scale.cooldown"].origin == f"{file}, [manager.scale]"
    assert (config.manager["workers.max"].value, config.manager["workers.min"].value) == (1, 1)
    assert config.manager["http"].value == "127.0.0.1:0" and "scale" not in default.line()


def test_a_flag() -> None:
    name, table = parse_flag("a:max=2,limits.mem=1GiB,preload=x+y")
    pool = make_pool(name, [("flag", table | {"packages": "/nowhere/set-1"})], Path())
    assert (pool.name, pool["max"], pool["limits.mem"]) == ("a", 2, 1024 * MIB)
    assert pool["preload"] == ("x", "y") and "no package set '/nowhere/set-1'" in pool.missing
    assert parse_flag("a") == ("a", {})
    for words in ("a:max", "a:limit.mem=1GiB"):
        with pytest.raises(ConfigError):
            parse_flag(words)


def test_check_and_show(file: Path) -> None:
    done = CliRunner().invoke(check, [str(file)])
    assert done.exit_code == 0
    assert "pool tools: 3 slots, 512MiB a job, package set tools-" in done.output
    assert "memory: 2GiB of 2GiB" in done.output
    shown = CliRunner().invoke(show, ["--config", str(file), "--origin"]).output
    assert f"# {file}" in next(line for line in shown.splitlines() if "pools.tools.max " in line)
    assert 'pools.tools.limits.wall = "90s"' in shown and "# memory_budget" in shown
    found = json.loads(CliRunner().invoke(show, ["--config", str(file), "-o", "json"]).output)
    values = {each["key"]: each["value"] for each in found["settings"]}
    assert values["pools.default.maximum.mem"] == "256MiB" and values["target.isolation"] == "full"
    file.write_text(file.read_text().replace('"tools"', '"other"'))
    done = CliRunner().invoke(check, [str(file)])
    assert (
        done.exit_code == 78 and "pool tools would not serve: no package set 'other'" in done.output
    )


def test_check_reads_the_list_of_signers(file: Path, tmp_path: Path) -> None:
    """A start and a reload read it, too, and are refused without it."""
    signers = tmp_path / "signers"
    file.write_text(f'[target]\nfunction_policy = "signed"\nfunction_signers = "{signers}"\n')
    done = CliRunner().invoke(check, [str(file)])
    assert done.exit_code == 78 and f"function_signers: cannot read {signers}" in done.output
    signers.touch()
    assert CliRunner().invoke(check, [str(file)]).exit_code == 0
    signers.write_text("# ann has left\nbob cert-authority ssh-ed25519 AAAA\n")
    done = CliRunner().invoke(check, [str(file)])
    wrong = f"function_signers: {signers}: line 2 of the list of signers: cert-authority"
    assert done.exit_code == 78 and wrong in done.output


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('[target]\ndata = "/srv/a,b"', "may hold no comma"),
        ('[target]\ndata = "/srv/a"\nssd = "/srv/b/../a"', "give two folders"),
        ('[target]\ndata = "/srv/a"\nssd = "/srv/a/heads"', "give two folders"),
        ('[target]\nname = "iqn.2026-11.iosd:a,b"', "name must be letters, digits"),
        ('[target]\nname = "iqn.2026-11.iosd:a_b"', "name must be letters, digits"),
        ('[manager]\nhttp = "localhost:8470"', "http must be an IP address"),
    ],
)
def test_check_refuses_what_a_start_refuses(file: Path, lines: str, words: str) -> None:
    file.write_text(lines)
    done = CliRunner().invoke(check, [str(file)])
    assert done.exit_code == 78 and words in done.output, done.output


def test_the_page_has_every_key() -> None:
    page = (SOURCE / "docs" / "pools.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    named = [word.strip().strip(".") for row in rows for word in row.split(",")]
    for key in POOL_KEYS:
        assert key.name in named, key.name
    for key in SCALE_KEYS:
        assert key.name in named or f"scale.{key.name}" in named, key.name
    keys = ", ".join(f".{key.name}" for key in LIMIT_KEYS)
    assert f"| limits{keys} |" in page and f"| maximum{keys} |" in page


def test_the_pages_example_is_served(tmp_path: Path) -> None:
    page = (SOURCE / "docs" / "pools.md").read_text()
    path = tmp_path / "iosd.toml"
    path.write_text(page.partition("```toml\n")[2].partition("```")[0])
    default, numpy = load(path, given={"package_sets": str(tmp_path)}).pools
    assert (default["max"], numpy["limits.mem"], numpy["maximum.mem"]) == (4, 512 * MIB, 2048 * MIB)


def test_the_same_content_is_the_same_set(tmp_path: Path) -> None:
    files = {"greeting.py": "x = 1\n"}
    first, second = make("a", tmp_path, files), make("a", tmp_path, files)
    assert first == second
    other = make("a", tmp_path, {"greeting.py": "x = 2\n"})
    assert other.id != first.id and (tmp_path / "a" / "current").resolve() == other.folder
    for path in (first.folder, *first.folder.rglob("*")):
        assert path.stat().st_mode & 0o022 == 0


def test_build_says_what_is_wrong(tmp_path: Path) -> None:
    words = ["--package-sets", str(tmp_path), "--wheels", str(tmp_path)]
    nothing = CliRunner().invoke(build, ["tools", *words])
    assert nothing.exit_code == 1 and "name at least one package" in nothing.output
    name = CliRunner().invoke(build, ["../tools", "numpy", *words])
    assert name.exit_code == 1 and "is no name for a set" in name.output
    absent = CliRunner().invoke(build, ["tools", "no-such-package-here", *words])
    assert absent.exit_code == 1 and "pip does not install it" in absent.output
    assert not any(path.name.startswith(".building") for path in tmp_path.rglob("*"))


def test_check_beside_two_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is checked nevertheless. Missing comparisons are reported and are no error."""
    urls = [f"iscsi://127.0.0.1:{port}/iqn.x/1" for port in (1, 2)]
    running = [{"url": url, "name": "iqn.x", "config": "/another.toml"} for url in urls]
    monkeypatch.setattr("iosd_host.cli.config.places.running", lambda kind: running)
    file = tmp_path / "iosd.toml"
    file.write_text("[pools.default]\nmax = 1\n")
    done = CliRunner().invoke(check, [str(file)])
    assert done.exit_code == 0, done.output
    assert "not compared with a target that runs" in done.stdout
    assert all(url in done.stdout for url in urls)
    assert "osd:" not in done.output


def test_bounds_of_sizes_have_units() -> None:
    with pytest.raises(ValueError, match=r"from 32MiB to 1024TiB$"):
        Size(32 << 20, 1 << 50)("17")
