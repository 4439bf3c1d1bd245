# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds uses of the clock and of randomness in a script: its result may then differ without a change of
its inputs.

It reads the names in the source.  It finds mistakes, not intent: a script can hide what it does, and a
module of a package set is not read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["impurity"]

MODULES = frozenset({"random", "secrets", "time", "timeit", "uuid", "_random", "_uuid"})
NAMES = frozenset(
    """
    now utcnow today urandom getrandom getpid random default_rng rand randn randint shuffle
    perf_counter monotonic process_time time_ns uuid1 uuid4 SystemRandom
    __import__ import_module eval exec compile
    """.split()
)


def impurity(code: bytes) -> str:
    """Why the result of a script may depend on more than its inputs; "": no reason was found.

    A script that cannot be read here (byte-code, an archive with modules) has a reason, too.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return "the code is no plain source, so nobody can see whether it uses clock or randomness"
    for line, name in _suspects(tree):
        return f"line {line} uses '{name}': the result may differ although no input has changed"
    return ""


def _suspects(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names if each.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module] if module.split(".")[0] in MODULES else []
            names += [each.name for each in node.names if each.name in NAMES | MODULES]
        elif isinstance(node, ast.Attribute):
            names = [node.attr] if node.attr in NAMES else []
        elif isinstance(node, ast.Name):
            names = [node.id] if node.id in NAMES else []
        if names:
            yield getattr(node, "lineno", 0), names[0]
