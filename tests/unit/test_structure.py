# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/structure.py on a small tree: it finds cycles, lengths, locks and threads, and takes nothing from
comments, strings and tests."""

from __future__ import annotations

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
int osd_figures_count(void)
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
    assert "files above 500 lines: 1 of 6" in "\n".join(lines)
    assert "513 target/wire/cdb.c" in lines
    assert "locks: 1 cond, 2 lock" in "\n".join(lines)
    assert "target/exec/pool.h 1 cond" in lines
    assert "target/exec/queue.c 2 lock" in lines
    assert "iosd-watch sandbox/main.c" in lines


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
