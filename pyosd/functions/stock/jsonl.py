# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `jsonl`: some objects and some fields of JSON lines, one object a line.

Parameters: fields=NAME,NAME...: these, in this order; default: all.  A name like a.b is field b of the
object in field a.  where=NAME and is=TEXT: the objects whose field has this text, or is written so in
JSON, as 7, true or null.  A field that an object does not have is left out, and has no text.
"""

from __future__ import annotations

import json

import osd


def options_of(stage: osd.StageInput) -> dict[str, str]:
    """Its parameters.  Raises: ValueError: there are others, or no column for a text."""
    if unknown := stage.options.keys() - {"fields", "where", "is"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    if "is" in stage.options and "where" not in stage.options:
        raise ValueError("is=TEXT needs where=NAME")
    return stage.options


def get(record: object, name: str) -> tuple[bool, object]:
    """Whether the record has the field, and its value."""
    for part in name.split("."):
        if not isinstance(record, dict) or part not in record:
            return False, None
        record = record[part]
    return True, record


def written(value: object) -> str:
    """As JSON, short."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main(args: bytes) -> bytes:
    """JSON lines to JSON lines, UTF-8.  Lines of white space are left out."""
    stage = osd.stage(args)
    options = options_of(stage)
    fields = options["fields"].split(",") if "fields" in options else []
    where, text = options.get("where"), options.get("is", "")
    made = []
    for line in stage.data.split(b"\n"):
        if not line.strip():
            continue
        record = json.loads(line)
        has, value = (True, None) if where is None else get(record, where)
        if where is not None and not (has and text in (value, written(value))):
            continue
        if fields:
            found = {name: get(record, name) for name in fields}
            record = {name: value for name, (has, value) in found.items() if has}
        made.append(written(record).encode() + b"\n")
    return b"".join(made)
