# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd job replay`, `osd job diff` and `osd exec --reuse-result` against a target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyosd.types import ObjectRef
from tests import warm
from tests.cli.conftest import Run
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

WORDS = """
import osd
words = osd.userobject(*(int(each, 0) for each in osd.args)).data.read().split()
osd.result(len(words))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(WORDS)
    return path


def words(obj: ObjectRef) -> tuple[str, str, str]:
    return "--", hex(obj.partition_id), hex(obj.object_id)


def submit(osd: Run, obj: ObjectRef, script: Path, *flags: str) -> str:
    job = osd("exec", script, "--zone", obj, "--no-wait", *flags, *words(obj)).stdout.strip()
    osd("job", "wait", job)
    return job


def test_replay_says_what_has_changed(osd: Run, obj: ObjectRef, script: Path) -> None:
    job = submit(osd, obj, script)
    refused = osd("job", "replay", job, code=18)
    assert "--script" in refused.stderr
    same = osd("job", "replay", job, "--script", script, *words(obj))
    assert "no input has changed" in same.stderr
    osd("job", "wait", same.stdout.strip())
    assert osd("job", "result", same.stdout.strip()).stdout == osd("job", "result", job).stdout
    osd("obj", "write", obj, "-", data=b"two words")
    changed = osd("job", "replay", job, "--script", script, *words(obj))
    assert f"input {obj} has changed: version" in changed.stderr
    new = changed.stdout.strip()
    osd("job", "wait", new)
    found = json.loads(osd("job", "diff", job, new, "-o", "json").stdout)["differences"]
    assert f"input {obj}" in {each["id"] for each in found}
    same = osd("job", "diff", job, job, "--no-header")
    assert same.stdout == "" and "the jobs do not differ" in same.stderr
    script.write_text(WORDS + "pass\n")
    other = osd("job", "replay", job, "--script", script, *words(obj), code=18)
    assert "is not the script" in other.stderr


def test_a_failed_job_in_the_debugger(
    osd: Run, obj: ObjectRef, script: Path, serving: Serving
) -> None:
    script.write_text(WORDS + "osd.userobject(int(osd.args[0], 0), 0x7FFFFFFF).data.read()\n")
    job = osd("exec", script, "--zone", obj, "--no-wait", *words(obj)).stdout.strip()
    osd("job", "wait", job, code=10)
    again = osd("job", "replay", job)
    osd("job", "wait", again.stdout.strip(), code=10)
    done = warm.run(
        [
            "osd",
            "job",
            "replay",
            job,
            "--script",
            script,
            "--local",
            "--pdb",
            "--target",
            serving.url,
            *words(obj),
        ],
        input="p len(words)\nq\n",
        text=True,
        capture_output=True,
    )
    assert done.returncode == 10, done.stderr
    assert "not known what has changed" in done.stderr
    assert "PermissionDenied" in done.stderr
    assert "(Pdb) 4" in done.stdout
    osd("job", "replay", job, "--pdb", code=2)
    osd("job", "replay", job, "--local", code=2)


def test_reuse_result(osd: Run, obj: ObjectRef, script: Path) -> None:
    first = submit(osd, obj, script, "--reuse-result")
    again = osd("exec", "--reuse-result", script, "--zone", obj, "--no-wait", *words(obj))
    assert again.stdout.strip() == first
    assert "cached result" in again.stderr
    assert submit(osd, obj, script, "--reuse-result=1h") == first
    assert submit(osd, obj, script) != first
    script.write_text("import time\n" + WORDS)
    refused = osd("exec", script, "--zone", obj, "--reuse-result", *words(obj), code=2)
    assert "line 1 uses 'time'" in refused.output
