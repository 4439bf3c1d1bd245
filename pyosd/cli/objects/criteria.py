# SPDX-License-Identifier: GPL-2.0-or-later
"""Criteria as people type them, ``page/number >= value``, made conditions of a query."""

from __future__ import annotations

import re
from typing import Any

import click

from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.frame.params import NUMBER
from pyosd.osd._errors import Invalid
from pyosd.osd._query import Condition, attr

__all__ = ["CRITERION", "CRITERION_HELP", "condition_of"]

TOKEN = re.compile(
    r"""\s*(?:(?P<op><=|>=|==|!=|=|<|>)|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s<>=!"']+))"""
)
REVERSED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "=": "=", "==": "==", "!=": "!="}
NAME = re.compile(r"(?P<page>\w+)/(?P<number>\w+)")
CRITERION_HELP = (
    "CRITERION is 'PAGE/NUMBER OP VALUE', quoted for the shell, where OP is =, >=, <=, > or <. It can "
    "also be 'LOW <= PAGE/NUMBER <= HIGH', or PAGE/NUMBER alone: objects with this attribute.  VALUE "
    "is a number (8 bytes, as 'osd obj attr set --int' stores it), \"text in quotes\", a word, or "
    "hex:00ff. Values compare byte by byte."
)

CriterionToken = tuple[str, str]  # kind (op, text or word) and what it says


def tokens_of(text: str) -> list[CriterionToken]:
    """Split a criterion.  Raises: ValueError: at something that is no part of one."""
    found: list[CriterionToken] = []
    at = 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"cannot read '{text[at:].strip()}'")
        kind = match.lastgroup or ""
        found.append(("text" if kind in ("double", "single") else kind, match[kind]))
        at = match.end()
    return found


def value_of(token: CriterionToken) -> int | str | bytes:
    """The value a token stands for."""
    kind, text = token
    if kind == "op":
        raise ValueError(f"'{text}' where a value should be")
    if kind == "word" and text.startswith("hex:"):
        return bytes.fromhex(text.removeprefix("hex:"))
    if kind == "word" and text[:1].isdigit():
        return NUMBER.convert(text, None, None)
    return text


def attribute_of(token: CriterionToken) -> attr | None:
    """The attribute a token names, or None."""
    match = NAME.fullmatch(token[1]) if token[0] == "word" else None
    if match is None:
        return None
    try:
        page, number = int(match["page"], 0), int(match["number"], 0)
    except ValueError:
        return None
    return attr(page, number)


def compare(attribute: attr, operator: str, value: int | str | bytes) -> Condition:
    """attribute OP value."""
    made: dict[str, Any] = {
        ">=": lambda: attribute >= value,
        "<=": lambda: attribute <= value,
        ">": lambda: attribute > value,
        "<": lambda: attribute < value,
        "=": lambda: attribute == value,
        "==": lambda: attribute == value,
        "!=": lambda: attribute != value,
    }
    condition = made[operator]()
    assert isinstance(condition, Condition)
    return condition


def parse(text: str) -> Condition:
    """Read one criterion.  Raises: ValueError: it is none, or none a target can answer."""
    tokens = tokens_of(text)
    named = [n for n, token in enumerate(tokens) if attribute_of(token)]
    attribute = attribute_of(tokens[named[0]]) if named else None
    if attribute is None:
        raise ValueError("there is no PAGE/NUMBER in it (numbers of 32 bits, decimal or 0x)")
    at = named[0]
    before, after = tokens[:at], tokens[at + 1 :]
    if any(len(side) not in (0, 2) for side in (before, after)):
        raise ValueError("it is not PAGE/NUMBER OP VALUE, nor LOW <= PAGE/NUMBER <= HIGH")
    condition = attribute.defined()
    for (kind, operator), value, left in (
        *([(before[1], before[0], True)] if before else []),
        *([(after[0], after[1], False)] if after else []),
    ):
        if kind != "op":
            raise ValueError(f"'{operator}' where an operator should be")
        operator = REVERSED[operator] if left else operator
        condition &= compare(attribute, operator, value_of(value))
    return condition


class CriterionParam(ParamType[Condition]):
    """One criterion."""

    name = "CRITERION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Condition:
        """Parse; what no target can answer is wrong usage too."""
        if isinstance(value, Condition):
            return value
        try:
            return parse(str(value))
        except (ValueError, Invalid) as error:
            self.fail(f"'{value}': {error}", param, ctx)


def condition_of(criteria: tuple[Condition, ...], match_any: bool) -> Condition | None:
    """All criteria as one condition, None for none.  Raises: click.UsageError: too much of it."""
    if not criteria:
        return None
    joined = criteria[0]
    try:
        for each in criteria[1:]:
            joined = joined | each if match_any else joined & each
    except Invalid as error:
        raise click.UsageError(str(error)) from None
    return joined


CRITERION = CriterionParam()
