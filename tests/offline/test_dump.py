# SPDX-License-Identifier: GPL-2.0-or-later
"""Dump prints what is there, byte for byte, also of stores that the target refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iosd_host.cli import store as commands
from iosd_host.store_tools.check.problems import ProblemKind
from iosd_host.store_tools.opening.bdb import Table
from tests.harness import StartFailed
from tests.offline.damages import DAMAGES
from tests.offline.stores import APPLICATION, HEAD, Store, filled

ROOT = Path(__file__).resolve().parents[2]


def rows(store: Store, *words: str) -> list[dict[str, Any]]:
    result = store.run(commands.dump, "--json", *words)
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert {each["schema"] for each in found} == {"iosd.store-dump/1"}
    return found


def test_every_record_is_there(store: Store) -> None:
    untouched = store.digest()
    found = rows(store)
    assert store.digest() == untouched
    records = sum(len(store.records(table)) for table in Table)
    assert len(found) == records + len(store.roots)
    assert {each["what"] for each in found} >= {"superblock", "root", "partition", "job", "member"}
    assert not any(each["what"].startswith("damaged") for each in found)


def test_one_object(store: Store) -> None:
    found = rows(store, str(store.names.attributed))
    record = next(each for each in found if each["what"] == "user object")
    assert record["length"] == 100 and record["attribute_count"] == 6
    values = {
        (each["page"], each["number"]): bytes.fromhex(each["value"])
        for each in found
        if each["what"] == "attribute"
    }
    assert values[APPLICATION, 2] == b"value 2"
    assert len(values) == 6


def test_an_object_whose_record_is_damaged(store: Store) -> None:
    obj = store.names.attributed
    DAMAGES["object record of another version"].act(store)
    found = rows(store, f"{obj.partition_id:#x}/{obj.object_id:#x}")
    assert {"damaged record", "attribute"} <= {each["what"] for each in found}


def test_jobs_are_decoded(store: Store) -> None:
    found = rows(store, str(store.names.queued))
    job = next(each for each in found if each["what"] == "job")
    assert job["state"] == 1 and job["name"] == "waits"
    code = next(each for each in found if each["what"] == "job code")
    assert bytes.fromhex(code["value"]).endswith(b"print(1)")


def test_text_and_addresses(store: Store) -> None:
    text = store.run(commands.dump, "0x10000").stdout
    assert "value 2" in text and "0x10001/" not in text
    assert "superblock" in store.run(commands.dump, "root").stdout
    assert store.run(commands.dump, "0x99999").exit_code == 66
    assert store.run(commands.dump, "x/y").exit_code == 2


def test_nobody_reads_on(store: Store) -> None:
    """`osd target dump | head`: the end of the reader is no failure of the store's folder."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from pyosd.cli import main; main()", "target", "dump"]
    roots = ["--data", str(store.data)] + (["--ssd", str(store.ssd)] if store.ssd else [])
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run([*command, *roots], stdout=pipe, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (1, b"")
    assert store.run(commands.dump, "--data-to", "-").exit_code == 2


def test_the_bytes_of_an_object(store: Store) -> None:
    output = store.folder / "bytes"
    result = store.run(commands.dump, str(store.names.long), "--data-to", str(output))
    assert result.exit_code == 0
    assert output.read_bytes() == filled(HEAD + 70_000, 3)
    result = store.run(commands.dump, str(store.names.sparse), "--data-to", str(output))
    assert output.read_bytes() == bytes(HEAD + 12345) + filled(300, 4)
    result = store.run(commands.dump, str(store.names.collection), "--data-to", str(output))
    assert result.exit_code == 66


def test_a_store_that_the_target_refuses(store: Store) -> None:
    DAMAGES["object record of another version"].act(store)
    DAMAGES["a byte of the superblock"].act(store)
    DAMAGES["log of zeros"].act(store)
    with pytest.raises(StartFailed), store.serve():
        pass
    found = rows(store)
    damaged = [each for each in found if each["what"].startswith("damaged")]
    assert len(damaged) == 2
    assert any(each.get("value", "").startswith("09") for each in damaged)


def test_the_table_of_kinds_in_the_manual() -> None:
    text = (ROOT / "docs" / "offline-tools.md").read_text()
    found = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| (.*?) \|$", text, re.MULTILINE)
    assert found == [(each.slug, each.meaning, each.remedy or "nothing") for each in ProblemKind]
