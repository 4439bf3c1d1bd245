# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/structure.py on a small tree: it finds cycles, lengths, locks and threads, and takes nothing from
comments, strings and tests.  The tables of target/README.md name the locks and threads of the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import structure

ROOT = Path(__file__).resolve().parents[2]

FILES = {
    # queue.c and pool.c call each other; figures.c is called, and calls nobody.
    "target/exec/queue.c": """
/* osd_figures_alone(); struct osd_lock not_a_lock; */
static struct osd_lock first, second;
static const char *text = "osd_figures_alone()";

static int helper(int a)
{
	return a;
}

int osd_queue_push(int a,
		int b)
{
	struct osd_lock *borrowed = &first;

	return osd_pool_take(helper(a + b));
}
""",
    "target/exec/pool.c": """
__attribute__((format(printf, 1, 2)))
int osd_pool_take(int a)
{
	struct point p = {
		.x = 1,
	};
	return a ? osd_queue_push(a, p.osd_figures_alone) : osd_figures_count();
}
""",
    "target/exec/deep/figures.c": """
int osd_figures_count(struct osd_pool_take *a_type_is_no_call)
{
	return 0;
}

int osd_figures_alone(void)
{
	return 0;
}
""",
    "target/exec/pool.h": """
struct pool {
	pthread_cond_t changed;
	struct osd_rwlock *others;
};
void osd_pool_init(struct osd_lock *lock, struct osd_rwlock *other);
""",
    "target/exec/test_pool.c": "struct osd_lock lock;\n",
    "target/wire/cdb.c": "int osd_cdb(void)\n{\n" + "\tstep();\n" * 510 + "}\n",
    "sandbox/main.c": 'int main(void)\n{\n\tosd_thread_start(&thread->id, "iosd-watch", run, NULL);\n}\n',
    "sandbox/turns.c": 'int turn(void)\n{\n\tosd_helper_init(&helper, "iosd-turns", work, NULL);\n}\n',
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_cycles(tree: Path) -> None:
    found = {folder.name: folder for folder in structure.folders(structure.read(tree))}
    assert list(found) == ["sandbox", "target/exec", "target/wire"]
    cycle = structure.largest_cycle(found["target/exec"])
    assert [source.path for source in cycle] == ["target/exec/pool.c", "target/exec/queue.c"]
    assert structure.largest_cycle(found["target/wire"]) == []


def test_functions(tree: Path) -> None:
    sources = {source.path: source for source in structure.read(tree)}
    assert "target/exec/test_pool.c" not in sources
    assert sources["target/exec/queue.c"].functions == [
        structure.Function("helper", 4, True),
        structure.Function("osd_queue_push", 7, False),
    ]
    assert sources["target/exec/pool.c"].functions == [
        structure.Function("osd_pool_take", 8, False)
    ]
    assert sources["target/wire/cdb.c"].functions == [structure.Function("osd_cdb", 513, False)]


def test_report(tree: Path) -> None:
    lines = [" ".join(line.split()) for line in structure.report(structure.read(tree))]
    assert "target/exec 3 36 2 72 % 4 7 8 0" in lines
    assert any(line.startswith("target/exec/deep 1 ") for line in lines)
    assert "target/wire 1 513 0 0 % 513 513 513 1" in lines
    assert "files above 500 lines: 1 of 7" in "\n".join(lines)
    assert "513 target/wire/cdb.c" in lines
    assert "locks: 1 cond, 2 lock" in "\n".join(lines)
    assert "target/exec/pool.h 1 cond" in lines
    assert "target/exec/queue.c 2 lock" in lines
    assert "iosd-watch sandbox/main.c" in lines
    assert "iosd-turns sandbox/turns.c" in lines


def test_this_tree() -> None:
    """As target/README.md says it is called."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.structure"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for folder in ("sandbox", "target/exec", "target/object", "target/wire"):
        assert f"\n{folder} " in done.stdout
    assert "iosd-worker" in done.stdout


def table(title: str) -> list[list[str]]:
    """The rows of the table below this title of target/README.md, without its head."""
    text = (ROOT / "target/README.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.split("\n") if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_no_cycles() -> None:
    """No two files of a folder call each other, directly or over others, but for one pair: the row of a
    command stands in the table of commands, and this command lists the table."""
    found = {
        folder.name: {Path(source.path).name for source in structure.largest_cycle(folder)}
        for folder in structure.folders(structure.read(ROOT))
    }
    assert len(found) > 10
    assert {name: cycle for name, cycle in found.items() if cycle} == {
        "target/command": {"cmd_perform.c", "table.c"}
    }


def test_table_of_locks() -> None:
    """All ranks in their order, each with the file that makes its lock."""
    header = (ROOT / "target/base/lock.h").read_text(encoding="utf-8")
    code = {
        path.relative_to(ROOT / "target").as_posix(): path.read_text(encoding="utf-8")
        for path in (ROOT / "target").rglob("*.[ch]")
        if not path.name.startswith("test_")
    }
    made = [
        [rank, name, *(path for path in code if re.search(rf"\bOSD_RANK_{rank}\b", code[path]))]
        for rank, name in re.findall(r'\bLOCK\((\w+), "([^"]+)"\)', header)
    ]
    rows = table("Locks")
    assert len(made) > 30
    assert [row[:3] for row in rows] == made
    assert all(len(row) == 4 and row[3] for row in rows)


def test_table_of_threads() -> None:
    """Every thread that target/ starts, with the file that names it."""
    started = {
        (name, source.path.removeprefix("target/"))
        for source in structure.read(ROOT)
        for name in source.threads
        if source.path.startswith("target/")
    }
    rows = table("Threads")
    assert len(started) > 10
    assert {(row[0], row[1]) for row in rows} == started and len(rows) == len(started)
    assert all(len(row) == 4 and row[2] and row[3] for row in rows)
