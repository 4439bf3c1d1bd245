# SPDX-License-Identifier: GPL-2.0-or-later
"""How the result of an ended job came about, as PROV-JSON of the W3C.  Pure.

https://www.w3.org/submissions/prov-json/ describes the form, https://www.w3.org/TR/prov-dm/ the words.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any
from urllib.parse import quote

from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobFlag, JobState, JobStatus
from pyosd.wire.used import CHANGES, READS, Used, UsedKind, UsedObject

__all__ = ["Document", "document_of"]

IOSD = "urn:iosd:terms:"
CODE, SET, USER = "urn:sha256:", "urn:iosd:set:", "urn:iosd:user:"
Document = dict[str, dict[str, Any]]


def qualified(name: str) -> dict[str, str]:
    """A name as a value."""
    return {"$": name, "type": "prov:QUALIFIED_NAME"}


def time_of(moment: datetime) -> str:
    """As xsd:dateTime."""
    return moment.isoformat()


class Graph:
    """A document under construction."""

    def __init__(self, url: str) -> None:
        self.document: Document = defaultdict(dict)
        self.document["prefix"] = {
            "iosd": IOSD,
            "code": CODE,
            "set": SET,
            "user": USER,
            "target": f"{url.rstrip('/')}/",
        }

    def add(self, section: str, name: str, **facts: Any) -> str:
        """Add an element, and return its name.  Facts that are empty are left out."""
        given = {
            key.replace("_", ":", 1): each for key, each in facts.items() if each not in ("", None)
        }
        self.document[section].setdefault(name, {}).update(given)
        return name

    def relate(self, section: str, **facts: Any) -> None:
        """Add a relation."""
        self.add(section, f"_:{section}{len(self.document[section]) + 1}", **facts)

    def version(self, obj: ObjectRef, version: bytes) -> str:
        """The entity of an object, or of one version of its data."""
        whole = f"target:{obj}"
        if not version:
            return self.add("entity", whole, prov_type=qualified("iosd:Object"))
        name = f"{whole}@{version.hex()}"
        if name not in self.document["entity"]:
            self.add("entity", whole, prov_type=qualified("iosd:Object"))
            self.add(
                "entity", name, prov_type=qualified("iosd:Version"), iosd_version=version.hex()
            )
            self.relate("specializationOf", prov_specificEntity=name, prov_generalEntity=whole)
        return name


def name_of(job: ObjectRef) -> str:
    """The activity that a job is; its surrogate is an object too."""
    return f"target:{job}#job"


def words(kinds: UsedKind) -> str:
    """The uses of an object, in the words of `osd job inputs`."""
    return ",".join(each.name.lower() for each in UsedKind if each & kinds and each.name)


def add_input(graph: Graph, job: str, used: UsedObject) -> None:
    """An object that the job read."""
    ranges = ",".join(f"{start}-{end}" for start, end in used.ranges)
    graph.relate(
        "used",
        prov_activity=job,
        prov_entity=graph.version(used.object, used.version),
        prov_role="input",
        iosd_how=words(used.kinds & READS),
        iosd_bytes=ranges,
    )


def add_output(graph: Graph, job: str, used: UsedObject, ended: str) -> None:
    """An object that the job changed, made or removed."""
    how = words(used.kinds & CHANGES)
    before = graph.version(used.object, used.before) if used.before else ""
    if used.kinds & UsedKind.REMOVED:
        graph.relate(
            "wasInvalidatedBy",
            prov_entity=before or graph.version(used.object, b""),
            prov_activity=job,
            prov_time=ended,
        )
        return
    after = graph.version(used.object, used.after)
    graph.relate(
        "wasGeneratedBy", prov_entity=after, prov_activity=job, prov_time=ended, iosd_how=how
    )
    if before and before != after and not used.kinds & UsedKind.CREATED:
        graph.relate(
            "wasDerivedFrom",
            prov_generatedEntity=after,
            prov_usedEntity=before,
            prov_type=qualified("prov:Revision"),
        )


def add_code(graph: Graph, job: str, status: JobStatus) -> str:
    """The plan of the job: the code, and its packages.  Returns: the code's entity."""
    code = graph.add(
        "entity",
        f"code:{status.sha256}",
        prov_type=qualified("prov:Plan"),
        iosd_sha256=status.sha256,
        iosd_function=str(status.function or ""),
        iosd_signer=status.signer,
    )
    engine, _, packages = status.engine.partition(" ")
    graph.add("activity", job, iosd_engine=engine)
    if packages:
        name = graph.add(
            "entity",
            f"set:{quote(packages)}",
            prov_type=qualified("iosd:PackageSet"),
            prov_label=packages,
        )
        graph.relate("used", prov_activity=job, prov_entity=name, prov_role="packages")
    return code


def add_agents(graph: Graph, job: str, code: str, status: JobStatus) -> None:
    """The agents: the target, which ran the job, and the user who submitted it."""
    target = graph.add(
        "agent",
        "target:target",
        prov_type=qualified("prov:SoftwareAgent"),
        prov_label=graph.document["prefix"]["target"],
    )
    graph.relate("wasAssociatedWith", prov_activity=job, prov_agent=target, prov_plan=code)
    if status.principal:
        user = graph.add("agent", f"user:{quote(status.principal)}", prov_label=status.principal)
        graph.relate("wasAssociatedWith", prov_activity=job, prov_agent=user)
        graph.relate(
            "actedOnBehalfOf", prov_delegate=target, prov_responsible=user, prov_activity=job
        )


def add_result(graph: Graph, job: str, status: JobStatus, ended: str) -> None:
    """The result, if there is one, and the job that this one ran for again."""
    if status.state is JobState.COMPLETED and status.result_length:
        result = graph.add(
            "entity",
            f"target:{status.result_object or status.id}#result",
            prov_type=qualified("iosd:Result"),
            iosd_length=status.result_length,
        )
        graph.relate("wasGeneratedBy", prov_entity=result, prov_activity=job, prov_time=ended)
    if status.predecessor:
        earlier = graph.add("activity", name_of(status.predecessor))
        graph.relate("wasInformedBy", prov_informed=job, prov_informant=earlier)


def document_of(url: str, status: JobStatus, used: Used) -> Document:
    """The document of one job, for json.dumps().

    Args: url: of its target.  status: of an ended job that is no array.  used: the objects that it used.
    Raises: ValueError: the job has not ended, or is an array.
    """
    if status.ended is None or JobFlag.ARRAY in status.flags:
        raise ValueError("only a job that has ended has a provenance; of an array each member")
    graph, ended = Graph(url), time_of(status.ended)
    job = graph.add(
        "activity",
        name_of(status.id),
        prov_type=qualified("iosd:Job"),
        prov_label=status.name,
        prov_startTime=time_of(status.started) if status.started else None,
        prov_endTime=ended,
        iosd_state=status.state.name,
        iosd_reason=status.reason,
        iosd_zone=str(status.zone or ""),
        iosd_pool=status.pool,
        iosd_index=status.array.index if status.array else None,
        iosd_answered=JobFlag.ANSWERED in status.flags or None,
        iosd_objectsLeftOut=used.left_out or None,
    )
    code = add_code(graph, job, status)
    add_agents(graph, job, code, status)
    for each in used.only(READS).objects:
        add_input(graph, job, each)
    for each in used.only(CHANGES).objects:
        add_output(graph, job, each, ended)
    add_result(graph, job, status, ended)
    return dict(graph.document)
