# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd job export --prov`: rules of the schema of PROV-JSON and of PROV, and what the document says."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pyosd.types import ObjectRef
from tests.cli.conftest import Run

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

ELEMENTS = {"entity", "activity", "agent"}
# relation -> its required properties and the kind of element that each names
RELATIONS = {
    "used": {"prov:activity": "activity", "prov:entity": "entity"},
    "wasGeneratedBy": {"prov:entity": "entity", "prov:activity": "activity"},
    "wasInvalidatedBy": {"prov:entity": "entity", "prov:activity": "activity"},
    "wasDerivedFrom": {"prov:generatedEntity": "entity", "prov:usedEntity": "entity"},
    "wasInformedBy": {"prov:informed": "activity", "prov:informant": "activity"},
    "wasAssociatedWith": {"prov:activity": "activity", "prov:agent": "agent"},
    "actedOnBehalfOf": {"prov:delegate": "agent", "prov:responsible": "agent"},
    "specializationOf": {"prov:specificEntity": "entity", "prov:generalEntity": "entity"},
}
OPTIONAL = {"prov:plan": "entity", "prov:activity": "activity"}
TIMES = {"prov:time", "prov:startTime", "prov:endTime"}
MADE = """
import osd
read, changed, gone = (osd.userobject(*ids) for ids in osd.args)
text = read.data.read()
changed.data.write(text)
made = osd.userobject(read.partition_id).create()
made.data.write(text)
gone.remove()
osd.result(len(text))
"""


def check_value(value: Any) -> None:
    """A literal: a string, number or boolean; or an object with $ and a type or a language."""
    if isinstance(value, dict):
        assert "$" in value and value.keys() <= {"$", "type", "lang"}
        assert all(isinstance(each, str) for each in value.values())
    else:
        assert isinstance(value, str | int | float | bool)


def check_properties(document: dict[str, Any], facts: dict[str, Any]) -> None:
    for key, value in facts.items():
        prefix, colon, local = key.partition(":")
        assert colon and local and prefix in {"prov", *document["prefix"]}, key
        check_value(value)
        if key in TIMES:
            assert datetime.fromisoformat(value).tzinfo is not None
        if isinstance(value, dict) and value["type"] == "prov:QUALIFIED_NAME":
            assert value["$"].partition(":")[0] in {"prov", *document["prefix"]}


def check_schema(document: dict[str, Any]) -> None:
    assert document.keys() <= {"prefix", *ELEMENTS, *RELATIONS}
    assert all("://" in each or each.startswith("urn:") for each in document["prefix"].values())
    names = {kind: document.get(kind, {}).keys() for kind in ELEMENTS}
    assert not names["entity"] & names["activity"], "entity-activity-disjoint"
    for kind in ELEMENTS:
        for name, facts in document.get(kind, {}).items():
            assert name.partition(":")[0] in document["prefix"], name
            check_properties(document, facts)
    for relation, needed in RELATIONS.items():
        for name, facts in document.get(relation, {}).items():
            assert name.startswith("_:")
            assert needed.keys() <= facts.keys()
            check_properties(document, facts)
            for key, kind in (OPTIONAL | needed).items():
                if key in facts:
                    assert facts[key] in names[kind], (relation, key, facts[key])


def related(document: dict[str, Any], relation: str, **given: str) -> list[dict[str, Any]]:
    wanted = {f"prov:{key}": value for key, value in given.items()}
    return [each for each in document.get(relation, {}).values() if wanted.items() <= each.items()]


def new_object(osd: Run, pid: str, data: bytes) -> ObjectRef:
    return ObjectRef.parse(osd("obj", "write", pid, data=data).stdout.strip())


def test_a_job_and_what_it_used(osd: Run, pid: str, tmp_path: Path) -> None:
    read, changed, gone = (new_object(osd, pid, data) for data in (b"read", b"old", b"gone"))
    script = tmp_path / "made.py"
    ids = [[each.partition_id, each.object_id] for each in (read, changed, gone)]
    script.write_text(MADE.replace("osd.args", repr(ids)))
    id_ = osd("exec", script, "--zone", pid, "--no-wait", "--name", "maker").stdout.strip()
    osd("job", "wait", id_)
    document = json.loads(osd("job", "export", "--prov", id_).stdout)
    check_schema(document)
    job = f"target:{id_}#job"
    facts = document["activity"][job]
    assert (facts["prov:label"], facts["iosd:state"], facts["iosd:zone"]) == (
        "maker",
        "COMPLETED",
        pid,
    )
    assert facts["prov:startTime"] <= facts["prov:endTime"]
    inputs = json.loads(osd("job", "inputs", id_, "-o", "json").stdout)["objects"]
    [of_read] = [each for each in inputs if each["id"] == str(read)]
    [used] = related(document, "used", entity=f"target:{read}@{of_read['version']}")
    assert (used["prov:activity"], used["iosd:bytes"]) == (job, "0-4")
    assert "data" in used["iosd:how"].split(",")
    outputs = json.loads(osd("job", "outputs", id_, "-o", "json").stdout)["objects"]
    after = {each["id"]: each["after"] for each in outputs}
    for each in outputs:
        if each["id"] == str(gone):
            assert related(document, "wasInvalidatedBy", activity=job)
        else:
            name = f"target:{each['id']}@{after[each['id']]}"
            assert related(document, "wasGeneratedBy", entity=name, activity=job)
    assert len(outputs) == 3
    [revised] = document["wasDerivedFrom"].values()
    assert revised["prov:generatedEntity"].startswith(f"target:{changed}@")
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    assert document["entity"][f"code:{digest}"]["iosd:sha256"] == digest
    assert related(document, "wasAssociatedWith", plan=f"code:{digest}", agent="target:target")
    user = json.loads(osd("job", "status", id_, "-o", "json").stdout)["principal"]
    assert {each.get("prov:label") for each in document["agent"].values()} >= {user}
    assert related(document, "wasGeneratedBy", entity=f"target:{id_}#result")


def test_members_and_what_cannot_be_exported(osd: Run, obj: ObjectRef, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import osd\nosd.result(osd.zone.length())")
    array = osd("exec", script, "--zone", obj, "--no-wait", "--array", "3,5").stdout.strip()
    osd("job", "wait", array)
    document = json.loads(osd("job", "export", "--prov", f"{array}[5]").stdout)
    check_schema(document)
    [facts] = document["activity"].values()
    assert facts["iosd:index"] == 5
    assert "members have" in osd("job", "export", "--prov", array, code=18).stderr
    assert "--prov" in osd("job", "export", array, code=2).stderr
    held = osd("exec", script, "--zone", obj, "--no-wait", "--hold").stdout.strip()
    assert "is HELD" in osd("job", "export", "--prov", held, code=18).stderr
    osd("job", "kill", held)
