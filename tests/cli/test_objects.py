# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd part`, `osd obj` and `osd target` against a target."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyosd.cli import main
from pyosd.cli.frame import completion_words
from pyosd.types import ObjectRef
from tests.cli.conftest import Run
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.tgtd


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Completion gives a target a fifth of a second, and no words if that is not enough."""
    monkeypatch.setattr(completion_words, "PATIENCE_S", DEADLINE_S)


def test_partition_lives_and_goes(osd: Run) -> None:
    pid = osd("part", "create").stdout.strip()
    assert pid in osd("part", "ls", "-o", "id").stdout.split()
    record = json.loads(osd("part", "stat", pid, "-o", "json").stdout)
    assert (record["schema"], record["id"], record["objects"]) == ("iosd.partition/1", pid, 0)
    osd("part", "rm", pid)
    assert pid not in osd("part", "ls", "-o", "id").stdout.split()
    osd("part", "stat", pid, code=66)


def test_partition_with_contents_needs_a_flag(osd: Run, obj: ObjectRef) -> None:
    osd("part", "rm", obj.partition_id, code=1)
    osd("part", "rm", obj.partition_id, "--contents", "--yes")


def test_write_read_append(osd: Run, obj: ObjectRef, tmp_path: Path) -> None:
    assert osd("obj", "read", obj).stdout == "the quick brown fox\n"
    osd("obj", "append", obj, data=b"jumps over\n")
    osd("obj", "write", obj, "--offset", "4", data=b"QUICK")
    assert osd("obj", "read", obj).stdout == "the QUICK brown fox\njumps over\n"
    assert osd("obj", "read", obj, "--offset", "4", "--length", "5").stdout == "QUICK"
    assert osd("obj", "read", obj, "--offset", "1MiB").stdout == ""
    osd("obj", "read", obj, "--to", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"the QUICK brown fox\njumps over\n"


def test_many_pieces(osd: Run, pid: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * 20_000  # five commands, the last one short
    (tmp_path / "in").write_bytes(data)
    address = osd("obj", "write", pid, tmp_path / "in").stdout.strip()
    osd("obj", "read", address, "--to", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data
    osd("obj", "append", address, tmp_path / "in")
    record = json.loads(osd("obj", "stat", address, "-o", "json").stdout)
    assert record["length_bytes"] == 2 * len(data)


def test_list_and_remove(osd: Run, pid: str) -> None:
    made = osd("obj", "create", pid, "--count", 3).stdout.split()
    assert len(made) == 3
    assert osd("obj", "ls", pid, "-o", "id").stdout.split() == made
    table = osd("obj", "ls", pid).stdout.splitlines()
    assert table[0].split()[:2] == ["OBJECT", "LENGTH"]
    assert len(table) == 4
    assert len(osd("obj", "ls", pid, "--no-header").stdout.splitlines()) == 3
    whole = json.loads(osd("obj", "ls", pid, "-o", "json").stdout)
    assert whole["schema"] == "iosd.objects/1"
    lines = osd("obj", "ls", pid, "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == whole["objects"]
    osd("obj", "rm", *made[:2])
    assert osd("obj", "ls", pid, "-o", "id").stdout.split() == made[2:]
    osd("obj", "rm", made[0], code=66)


def test_wanted_ids(osd: Run, pid: str) -> None:
    assert osd("obj", "create", f"{pid}/0x20000").stdout.strip() == f"{pid}/0x20000"
    osd("obj", "create", f"{pid}/0x20000", code=1)
    osd("obj", "create", f"{pid}/0x20000", "-n", "2", code=2)


def test_attributes(osd: Run, obj: ObjectRef) -> None:
    osd("obj", "attr", "set", obj, "0xa/1", "some text")
    osd("obj", "attr", "set", obj, "0xa/2", "0xdeadbeef", "--int")
    osd("obj", "attr", "set", obj, "0xa/3", "00ff", "--hex")
    osd("obj", "attr", "set", obj, "0xa/4", "--stdin", data=b"from stdin")
    whole = json.loads(osd("obj", "attr", "ls", obj, "0xa", "-o", "json").stdout)
    assert {each["number"]: each["hex"] for each in whole["attributes"]} == {
        1: b"some text".hex(),
        2: "00000000deadbeef",
        3: "00ff",
        4: b"from stdin".hex(),
    }
    assert osd("obj", "attr", "get", obj, "0xa/1", "--raw").stdout == "some text"
    assert osd("obj", "attr", "get", obj, "0xa/2", "--no-header").stdout.split()[2] == "3735928559"
    osd("obj", "attr", "set", obj, "0xa/1")
    osd("obj", "attr", "get", obj, "0xa/1", code=66)
    osd("obj", "attr", "set", obj, "0xa/5", "x", "--int", code=2)
    osd("obj", "attr", "set", obj, "0xa", "x", code=2)


def test_names_of_pages(osd: Run, obj: ObjectRef) -> None:
    osd("obj", "attr", "set", obj, "0xa0000/1", "x")
    whole = json.loads(osd("obj", "attr", "ls", obj, "-o", "json").stdout)["attributes"]
    names = {each["page"]: each["page_name"] for each in whole}
    assert (names[1], names[3], names[0xA0000]) == ("user-information", "user-timestamps", "")
    partition = str(obj).partition("/")[0]
    recovery = json.loads(osd("obj", "attr", "get", partition, "0x30000006/0", "-o", "json").stdout)
    assert {each["page_name"] for each in recovery["attributes"]} == {"partition-recovery"}
    assert "PAGE" in osd("obj", "attr", "ls", obj, "-o", "wide").stdout


def test_attributes_have_names_and_readable_values(osd: Run, pid: str, obj: ObjectRef) -> None:
    rows = {
        each["name"]: each
        for each in json.loads(osd("obj", "attr", "ls", obj, "-o", "json").stdout)["attributes"]
    }
    assert rows["used capacity"]["words"] == "20"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", rows["created"]["words"])
    assert rows["created"]["text"].isdigit(), "programs read what they always did"
    table = osd("obj", "attr", "ls", obj).stdout
    assert "NAME" in table.splitlines()[0] and "used capacity" in table
    quotas = json.loads(osd("obj", "attr", "ls", pid, "0x30000002", "-o", "json").stdout)
    counts = {each["name"]: each["words"] for each in quotas["attributes"]}
    assert counts["object count quota"] == "none"


def test_attribute_of_the_target_cannot_be_set(osd: Run, obj: ObjectRef) -> None:
    osd("obj", "attr", "set", obj, "1/2", "1", "--int", code=1)


def test_target_info_and_ping(osd: Run) -> None:
    record = json.loads(osd("target", "info", "-o", "json").stdout)
    assert record["schema"] == "iosd.target-info/1"
    assert record["vendor"] == "IOSD"
    assert record["exec_service_action"] == 0x8F81
    assert record["capacity_bytes"] > 0
    assert "capacity" in osd("target", "info").stdout
    figures = json.loads(osd("target", "ping", "-n", "3", "-o", "json").stdout)
    assert figures["count"] == 3
    assert 0 < figures["min_us"] <= figures["median_us"] <= figures["max_us"]


@pytest.mark.parametrize(
    "words",
    [
        ("obj", "read", "0x10000"),
        ("obj", "ls", "root"),
        ("obj", "stat", "nonsense"),
        ("obj", "rm"),
        ("part", "create", "-1"),
        ("obj",),
        ("nonsense",),
    ],
)
def test_wrong_usage(osd: Run, words: tuple[str, ...]) -> None:
    osd(*words, code=2)


@pytest.mark.parametrize("verb", ["obj stat", "obj read", "part stat"])
def test_completion_knows_what_is_there(osd: Run, obj: ObjectRef, verb: str) -> None:
    pid = hex(obj.partition_id)
    start = f"{pid}/" if verb.startswith("obj") else pid[:3]
    words = f"osd {verb} {start}"
    environment = {"_OSD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "3"}
    done = CliRunner().invoke(main, [], prog_name="osd", env=environment)
    assert f"plain,{obj if verb.startswith('obj') else pid}" in done.output.split()


@pytest.mark.parametrize(
    "words", ["exec --wh", "run --zone /", "submit --tag a=b --wh", "exec x --wh"]
)
def test_completion_before_a_script_is_named(osd: Run, obj: ObjectRef, words: str) -> None:
    count = str(len(words.split()))
    environment = {
        "_OSD_COMPLETE": "bash_complete",
        "COMP_WORDS": f"osd {words}",
        "COMP_CWORD": count,
    }
    done = CliRunner().invoke(main, [], prog_name="osd", env=environment)
    wanted = "plain,--where" if words.endswith("--wh") else "plain,/"
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert wanted in done.output


@pytest.mark.parametrize(
    ("shell", "names"),
    [("bash", {"plain-1.txt", "grün"}), ("zsh", {"plain-1.txt", "grün", "`id`", "$(id)", "a b"})],
)
def test_completion_has_no_command_of_others(
    osd: Run, pid: str, shell: str, names: set[str]
) -> None:
    """bash would run it."""
    for name in ("`id`", "$(id)", "a b", "plain-1.txt", "grün", "\x1b[2J"):
        osd("cp", "-", f"osd:/{pid}/{name}", data=b"x")
    environment = {"_OSD_COMPLETE": f"{shell}_complete", "COMP_WORDS": f"osd cat /{pid}/"}
    done = CliRunner().invoke(main, [], prog_name="osd", env=environment | {"COMP_CWORD": "2"})
    found = {line.removeprefix("plain,") for line in done.output.splitlines()}
    assert {name for name in found if name.startswith("/")} == {f"/{pid}/{each}" for each in names}


def test_completion_of_functions(osd: Run, tmp_path: Path) -> None:
    file = tmp_path / "completed.py"
    file.write_text("def main(args):\n    return 1\n")
    osd("fn", "put", file)
    environment = {"_OSD_COMPLETE": "bash_complete", "COMP_WORDS": "osd fn call comp"}
    done = CliRunner().invoke(main, [], prog_name="osd", env=environment | {"COMP_CWORD": "3"})
    assert "plain,completed" in done.output.split()
    osd("fn", "rm", "completed")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("attach 0x10000 comp", "completed"),
        ("hook add 0x10000 comp", "completed"),
        ("view create /v comp", "completed"),
        ("exec --pool def", "default"),
        ("pool show def", "default"),
        ("ls osd:/", "osd:/{pid}/"),
        ("sync photos osd : /", "/{pid}/"),  # bash ends words at the colon
        ("sync photos osd :", "/{pid}/"),
    ],
)
def test_completion_knows(osd: Run, pid: str, tmp_path: Path, words: str, wanted: str) -> None:
    if wanted == "completed":
        file = tmp_path / "completed.py"
        file.write_text("def main(args):\n    return 1\n")
        osd("fn", "put", file)
    count = str(len(words.split()))
    environment = {"_OSD_COMPLETE": "bash_complete", "COMP_WORDS": f"osd {words}"}
    done = CliRunner().invoke(main, [], prog_name="osd", env=environment | {"COMP_CWORD": count})
    assert f"plain,{wanted.format(pid=pid)}" in done.output.split()
    if wanted == "completed":
        osd("fn", "rm", "completed")


def test_completion_of_local_paths(osd: Run) -> None:
    environment = {"_OSD_COMPLETE": "bash_complete", "COMP_WORDS": "osd cp ph", "COMP_CWORD": "2"}
    done = CliRunner().invoke(main, [], prog_name="osd", env=environment)
    assert done.output.split() == ["file,ph"]


def test_completion_scripts(osd: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_OSD_COMPLETE" in osd("completion", shell).stdout
    assert "== */ ]] && compopt -o nospace" in osd("completion", "bash").stdout
