# SPDX-License-Identifier: GPL-2.0-or-later
"""The wheels of a host and of the security manager, each built from its source distribution.

``make wheels-test``; the file is not called test_*.py, so the gate does not collect it.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.packaging.test_wheels import VERSION, committed, make_wheels, metadata, sources


def test_host_and_security_manager_are_built_from_their_sources(tmp_path: Path) -> None:
    make_wheels(tmp_path, "iosd-host", "iosd-secmgr")
    [host] = tmp_path.glob("iosd_host-*.whl")
    [secmgr] = tmp_path.glob("iosd_secmgr-*-py3-none-any.whl")
    with zipfile.ZipFile(host) as files:
        names = set(files.namelist())
    libexec = {name for name in names if "/libexec/" in name}
    built = (
        "bs_iosd.so",
        "iosd_crc32c.so",
        "iosd_signers.so",
        "iosd-db-verify",
        "iosd-sandboxd",
        "iosd-zygote",
    )
    assert libexec == {f"iosd_host/libexec/{name}" for name in built}
    assert {"iosd_host/py.typed", "iosd_host/http/console/static/index.html"} <= names
    for wheel, folder in ((host, "iosd_host"), (secmgr, "iosd_secmgr")):
        assert f"iosd=={VERSION}" in metadata(wheel).get_all("Requires-Dist", [])
        [archive] = tmp_path.glob(f"{folder}-*.tar.gz")
        trees = ("target", "sandbox") if folder == "iosd_host" else ()
        missing = committed(folder, *trees) - set(sources(archive))
        assert missing <= {f"{folder}/README.md"}
        assert {"VERSION", "LICENSE", "README.md", "setup.py"} <= set(sources(archive))
