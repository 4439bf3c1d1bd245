# SPDX-License-Identifier: GPL-2.0-or-later
"""Views, and functions of directories, on a target that requires credentials."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd.functions.stock import STOCK
from pyosd.types import ObjectRef, ref
from tests.cli.conftest import Run
from tests.machine import unavailable
from tests.serving import sandboxes_missing

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


@pytest.fixture
def view(osd: Run, obj: ObjectRef) -> Iterator[ObjectRef]:
    """The object of a view of the partition of obj."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    osd("fn", "stock", "lines")
    made = osd(
        "view", "create", "0x77000", "--of", f"{obj.partition_id:#x}", "lines:contains=quick"
    ).stdout.strip()
    yield ref(int(made, 0), obj.object_id)
    osd("view", "rm", made, "--yes")
    osd("fn", "rm", "--force", "lines")


def test_why(osd: Run, obj: ObjectRef, view: ObjectRef) -> None:
    assert "knows of no READ" in osd("why", view).stdout
    before = json.loads(osd("view", "stats", "-o", "json").stdout)
    for how in ("was computed", "was kept from a READ before"):
        assert osd("obj", "read", view, "--length", "20").stdout == "the quick brown fox\n"
        told = osd("why", view).stdout
        assert f"the stored bytes of {obj}" in told and "lines@main" in told and how in told
        assert "not signed" in told and "contains" not in told
    record = json.loads(osd("why", view, "-o", "json").stdout)["origin"]
    assert record["source"] == str(obj) and record["read"]["kept"] is True
    after = json.loads(osd("view", "stats", "-o", "json").stdout)
    assert after["hits"] > before["hits"] and after["computed"] == before["computed"] + 1
    assert after["kept"] >= 20 and "COMPUTED" in osd("view", "stats").stdout
    osd("fn", "deactivate", "lines")
    assert "have changed since" in osd("why", view).stdout


def test_a_view_with_a_name(osd: Run, obj: ObjectRef, view: ObjectRef, tmp_path: Path) -> None:
    osd("fn", "stock", "gzip")
    made = osd("view", "create", "/foxes", "--of", f"{obj.partition_id:#x}", "gzip").stdout
    assert json.loads(osd("view", "show", "/foxes", "-o", "json").stdout)["id"] == made.strip()
    listed = json.loads(osd("view", "ls", "-o", "json").stdout)["views"]
    assert [each["name"] for each in listed] == ["", "foxes"]
    (copy := tmp_path / "copy").write_text("of an earlier read")
    address = f"{made.strip()}/{obj.object_id:#x}"
    refused = osd("obj", "read", address, "--to", copy, code=1).stderr
    assert "the script raised an exception" in refused and "osd fn log" in refused
    assert copy.read_text() == "of an earlier read"
    again = osd("view", "create", "/foxes", "--of", f"{obj.partition_id:#x}", code=1).stderr
    assert again == "osd: '/foxes' exists\n"
    assert "'/foxes' is a partition, not PID/OID" in osd("obj", "read", "/foxes", code=2).stderr
    assert "nor /NAME" in osd("view", "create", "foxes", "--of", "0x10000", code=2).stderr
    osd("view", "rm", "/foxes", "--yes")
    osd("fn", "rm", "--force", "gzip")


def test_parameters_of_stock_functions_are_checked(
    osd: Run, obj: ObjectRef, view: ObjectRef, tmp_path: Path
) -> None:
    for text, words in (
        (
            "lines:contain=x",
            "'lines' has no parameter 'contain'; its parameters are contains, invert",
        ),
        ("lines", "'lines' needs the parameter contains=..."),
        ("lines:invert=1", "'lines' needs the parameter contains=..."),
    ):
        assert words in osd("attach", obj, text, code=2).stderr
    assert "'osd fn stock csv' stores the one" in osd("attach", obj, "csv", code=66).stderr
    (tmp_path / "lines.py").write_text("def main(args):\n    return args\n")
    osd("fn", "put", tmp_path / "lines.py", "--size", "unknown")  # another function of this name
    osd("attach", obj, "lines:any=x")
    osd("detach", obj)
    assert f"{obj} has no hook 7" in osd("hook", "rm", obj, "7", code=66).stderr


def test_hooks_of_stock_functions_are_of_their_kind(osd: Run, obj: ObjectRef) -> None:
    osd("fn", "stock", "schema", "worm")
    words = ("hook", "add", obj)
    assert "'schema' follows changes: --after PAGE" in osd(*words, "schema", code=2).stderr
    assert "'worm' checks changes" in osd(*words, "worm", "--after", "0x10000", code=2).stderr
    assert osd("hook", "ls", obj, "-o", "json").stdout.count("iosd.hook/1") == 0
    osd("fn", "rm", "schema", "worm", "--yes")


def test_contracts_and_packages_of_functions(osd: Run, tmp_path: Path) -> None:
    (tmp_path / "same.py").write_text(
        "import osd\ndef main(args):\n    return osd.stage(args).data\n"
    )
    osd("fn", "put", tmp_path / "same.py", "--size", "same", "--records", "table")
    record = json.loads(osd("fn", "show", "same", "-o", "json").stdout)
    assert record["contract"]["records"] == "table" and record["contract"]["size"] == "same"
    refused = osd("fn", "put", tmp_path / "same.py", "--records", "lines", code=2)
    assert "--size" in refused.output
    osd("fn", "rm", "same", "--yes")
    refused = osd("fn", "stock", "lines", "parquet", code=2)
    assert "--pool" in refused.output and "pyarrow" in refused.output
    assert "median, thumbnail: no pool runs the engine wasm" in osd("fn", "stock").stderr
    names = {each["name"] for each in json.loads(osd("fn", "ls", "-o", "json").stdout)["functions"]}
    assert {"jsonl", "schema", "worm"} <= names and not {"parquet", "median"} & names
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text"))
    words = ("fn", "call", "gzip", "--parameters")
    assert osd(*words, "", "--input", tmp_path / "a.gz").stdout == "text"
    packed = osd(*words, "level=9", "--method", "compress", "--input", "-", data=b"text")
    assert gzip.decompress(packed.stdout_bytes) == b"text"
    osd(*words, "", code=2)
    osd("fn", "rm", "--force", "--yes", *(each for each in names if each in STOCK))


def test_why_of_stored_bytes(osd: Run, obj: ObjectRef) -> None:
    osd("obj", "read", obj)
    assert "knows of no READ" in osd("why", obj).stdout
    assert json.loads(osd("why", obj, "-o", "json").stdout)["origin"] is None
    job = f"{obj.partition_id:#x}/0x4000000000000001"
    assert f"osd job why {job}" in osd("why", job, code=2).stderr


def test_a_writable_view(osd: Run, obj: ObjectRef) -> None:
    osd("view", "create", "0x78001", "--of", f"{obj.partition_id:#x}", "--writable")
    assert osd("view", "show", "0x78001").stdout.split()[-2] == "yes"
    osd("obj", "write", f"0x78001/{obj.object_id:#x}", "--offset", "4", data=b"QUICK")
    assert osd("obj", "read", obj, "--length", "10").stdout == "the QUICK "
    osd("view", "rm", "0x78001", "--yes")


def test_functions_of_a_directory(osd: Run, obj: ObjectRef, tmp_path: Path) -> None:
    """They concern the files that have a name in it."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    text, folder = "one two three " * 1000, f"/{obj.partition_id:#x}/logs"
    (tmp_path / "a").write_bytes(gzip.compress(text.encode()))
    osd("fn", "stock", "gzip")
    osd("mkdir", folder)
    osd("cp", tmp_path / "a", f"osd:{folder}/a")
    osd("attach", folder, "gzip")
    assert "gzip" in osd("attached", folder).stdout
    assert osd("cat", f"{folder}/a").stdout == text
    (tmp_path / "large").write_bytes(gzip.compress(text.encode() * 200))
    osd("cp", tmp_path / "large", f"osd:{folder}/large")
    osd("cp", "-r", "--verify", f"osd:{folder}", tmp_path / "out")
    assert (tmp_path / "out/a").read_text() == text
    assert (tmp_path / "out/large").read_text() == text * 200
    assert json.loads(osd("stat", f"{folder}/large", "-o", "json").stdout)[
        "length_bytes"
    ] == 200 * len(text)
    osd("detach", folder)
    osd("cp", f"osd:{folder}/a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
    osd("rm", "-r", folder)
    osd("fn", "rm", "--force", "gzip")


def test_paths_of_a_view(osd: Run, pid: str, tmp_path: Path) -> None:
    """Verbs for files, jobs with paths and fsspec, on a view and on a view of it."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    osd("fn", "stock", "gzip")
    osd("mkdir", f"/{pid}/logs")
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(gzip.compress(f"{name} 1\n{name} 2\n".encode()))
        osd("cp", tmp_path / name, f"osd:/{pid}/logs/{name}.txt")
    osd("view", "create", "/plain", "--of", pid, "--writable", "gzip")
    osd("view", "create", "/seen", "--of", "/plain")
    for view in ("/plain", "/seen"):
        assert osd("ls", f"{view}/logs").stdout.count(".txt") == 2
        assert osd("cat", f"{view}/logs/a.txt").stdout == "a 1\na 2\n"
        found = osd("find", view, "-o", "id").stdout.split()
        assert {each.rpartition("/")[2] for each in found} >= {"a.txt", "b.txt"}
        stat = json.loads(osd("stat", f"{view}/logs/b.txt", "-o", "json").stdout)
        assert stat["length_bytes"] == 8
        assert osd("stat", f"{view}/logs").stdout.rstrip().endswith(f"{view}/logs/")
        out = tmp_path / view[1:]
        osd("cp", "-r", f"osd:{view}/logs", out)
        assert (out / "b.txt").read_text() == "b 1\nb 2\n"
        osd("sync", f"osd:{view}/logs", tmp_path / "synced")
        assert (tmp_path / "synced/a.txt").read_text() == "a 1\na 2\n"
    script = tmp_path / "count.py"
    script.write_text("import osd\nprint(sum(len(osd.open(p).read()) for p in osd.args))\n")
    ran = osd("exec", script, "--zone", "/seen", "--follow", "--", "logs/a.txt", "logs/b.txt")
    assert ran.stdout == "16\n"
    script.write_text("import osd\nfor each in osd.over: print(len(each.data.read()))\n")
    ran = osd("exec", script, "--over", "/seen/logs/*.txt", "--batch", "2", "--follow")
    assert ran.stdout.count("8\n") == 2
    script.write_text("import osd\nprint(*osd.glob('*'))\n")
    assert osd("exec", script, "--zone", "/seen/logs", "--follow").stdout == "a.txt b.txt\n"
    (tmp_path / "c").write_text("new\n")
    assert "read-only" in osd("cp", tmp_path / "c", "osd:/seen/logs/c.txt", code=1).output
    assert "read-only" in osd("rm", "/seen/logs/a.txt", code=1).output
    osd("cp", tmp_path / "c", "osd:/plain/logs/c.txt")
    osd("mkdir", "/plain/more")
    osd("mv", "/plain/logs/c.txt", "/plain/more/d.txt")
    osd("cp", f"osd:/{pid}/more/d.txt", tmp_path / "d")
    assert gzip.decompress((tmp_path / "d").read_bytes()) == b"new\n"
    assert osd("cat", "/seen/more/d.txt").stdout == "new\n"
    osd("rm", "-r", "/plain/more")
    assert "more" not in osd("ls", f"/{pid}").stdout
    for view in ("/seen", "/plain"):
        osd("view", "rm", view, "--yes")
    osd("fn", "rm", "--force", "gzip")
