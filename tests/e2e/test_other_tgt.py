# SPDX-License-Identifier: GPL-2.0-or-later
"""The module in another daemon than the tgtd of its build: it logs that and changes nothing.

The daemon is a few lines of C that load bs_iosd.so as tgtd does.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iosd_host.common import paths
from tests.machine import unavailable

pytestmark = pytest.mark.tgtd

INVALID_REQUEST, UNSUPPORTED_OPERATION = 17, 22
NOT_LOADED, NOT_REGISTERED = 100, 101

DAEMON = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct template {
	const char *name;
	int size;
	void *open, *close;
	int (*init)(void *unit, char *options);
};

static struct template *registered;
static _Alignas(16) unsigned char unit[16384];

void register_backingstore_template(struct template *t)
{
	registered = t;
}
#ifdef COMPLETE
void target_cmd_io_done(void) {}
int tgt_event_add(void) { return 0; }
void tgt_event_del(void) {}
void *alloc_vpd(void) { return 0; }
void *iscsi_transportid(void) { return 0; }
void concat_buf_init(void) {}
int concat_buf_finish(void) { return 0; }
void concat_buf_release(void) {}
int iscsi_target_show(void) { return 0; }
#endif

int main(int argc, char **argv)
{
	void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	void (*start)(void) = module ? (void (*)(void))dlsym(module, "register_bs_module") : 0;

	if (!start) {
		fprintf(stderr, "%s\n", dlerror());
		return 100;
	}
	start();
	if (!registered)
		return 101;
	memset(unit, FILL, sizeof(unit));
	memcpy(unit + TEMPLATE_AT, &registered, sizeof(registered));
	unit[6376 + 136] = 0x11; /* device type, where tgt 1.0.85 has it */
	return registered->init(unit, argc > 2 ? argv[2] : "");
}
"""


def run(tmp_path: Path, *defines: str) -> subprocess.CompletedProcess[str]:
    try:
        module = paths.find_component(paths.MODULE)
    except paths.MissingComponent as error:
        unavailable("tgtd", str(error))
    source, program = tmp_path / "daemon.c", tmp_path / "daemon"
    source.write_text(DAEMON)
    command: list[str | Path] = [
        "cc",
        "-rdynamic",
        *(f"-D{each}" for each in defines),
        source,
        "-o",
        program,
        "-ldl",
    ]
    subprocess.run(command, check=True, timeout=60)
    return subprocess.run(
        [program, module, "workers=1"], capture_output=True, text=True, timeout=60, check=False
    )


def test_unit_with_another_layout(tmp_path: Path) -> None:
    """The backing store's pointer lies 8 bytes further on than in the tgt we know."""
    done = run(tmp_path, "COMPLETE", "TEMPLATE_AT=6344", "FILL=0")
    assert done.returncode == INVALID_REQUEST, done.stderr
    assert "differ from those of" in done.stderr


@pytest.mark.parametrize("fill", ["0", "0xff"])
def test_attributes_with_another_layout(tmp_path: Path, fill: str) -> None:
    done = run(tmp_path, "COMPLETE", "TEMPLATE_AT=6336", f"FILL={fill}")
    assert done.returncode == UNSUPPORTED_OPERATION, done.stderr
    assert "install the tgt package" in done.stderr


def test_daemon_without_our_functions(tmp_path: Path) -> None:
    done = run(tmp_path, "TEMPLATE_AT=6336", "FILL=0")
    assert done.returncode == NOT_REGISTERED, done.stderr
    assert "lacks functions" in done.stderr
