# SPDX-License-Identifier: GPL-2.0-or-later
"""The default iosd.toml has every key of the schema, with values that can be served."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner

from iosd_host.cli.config import check
from iosd_host.config.files import in_force, load
from tools.configdoc import ROWS, default_file


def test_as_installed_it_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "iosd.toml"
    file.write_text(default_file())
    done = CliRunner().invoke(check, [str(file)])
    assert done.exit_code == 0, done.output
    found = in_force(load(file))
    assert all(setting.origin == "default" for setting in found.values())


def test_uncommented_it_is_served(tmp_path: Path) -> None:
    """All at once, the examples too; what is said to be a default is one."""
    packages = tmp_path / "numpy"  # a set's folder; its content is the zygote's business
    packages.mkdir()
    text = re.sub(r"^#(?! )", "", default_file(), flags=re.MULTILINE)
    file = tmp_path / "iosd.toml"
    text = text.replace('packages = "numpy"', f'packages = "{packages}"')
    secret = tmp_path / "chap_secret"
    secret.write_text("correct horse battery")
    secret.chmod(0o600)
    text = text.replace("/etc/iosd/chap_secret", str(secret))
    signers = tmp_path / "function_signers"
    signers.write_text("")
    text = text.replace("/etc/iosd/function_signers", str(signers))
    file.write_text(re.sub(r"^chap_file = .*", "", text, flags=re.MULTILINE))  # in place of that
    done = CliRunner().invoke(check, [str(file)])
    assert done.exit_code == 0, done.output
    file.write_text(text)
    standard, found = (in_force(load(each)) for each in (Path("/dev/null"), file))
    assert {f"{row.section}.{row.name}" for row in ROWS} == found.keys()
    for row in ROWS:
        name = f"{row.section}.{row.name}"
        assert found[name].origin == str(file), name
        if row.default and name in standard:
            assert json.dumps(standard[name].value) == row.value, name
