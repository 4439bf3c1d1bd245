# SPDX-License-Identifier: GPL-2.0-or-later
"""Every key of [target] and [heads] is an option of `osd target serve`, by its row alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from iosd_host.cli.serve import serve, source_of
from iosd_host.cli.target_config import target_config
from iosd_host.config.files import in_force, load
from iosd_host.config.schema import ConfigError, flag
from iosd_host.config.source import Source
from iosd_host.config.target_keys import OPTIONS
from tools.configdoc import ROWS

VALUES = {
    f"{row.section}.{row.name}": json.loads(row.value)
    for row in ROWS
    if row.section in ("target", "heads")
}


@pytest.fixture
def values(tmp_path: Path) -> dict[str, Any]:
    """A value for each option, as in a file, by full name."""
    secret = tmp_path / "secret"
    secret.touch()
    files = {f"target.{name}": str(secret) for name in ("chap_secret_file", "chap_file")}
    flags = {f"{table}.{key.name}": True for table, key in OPTIONS.values() if key.convert is flag}
    return VALUES | files | flags


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment gives no option; logs.configure() of other tests may have set two."""
    for _, key in OPTIONS.values():
        if key.envvar is not None:
            monkeypatch.delenv(key.envvar, raising=False)


def source(*words: str) -> Source:
    with serve.make_context("serve", ["--config", "/dev/null", *words]) as context:
        return source_of(context)


def words_of(parameter: str, value: Any) -> list[str]:
    option = f"--{parameter.replace('_', '-')}"
    if value is True:
        return [option]
    return [
        word
        for each in (value if isinstance(value, list) else [value])
        for word in (option, str(each))
    ]


def test_each_option_sets_its_key(values: dict[str, Any]) -> None:
    for parameter, (table, key) in OPTIONS.items():
        name = f"{table}.{key.name}"
        _, found = source(*words_of(parameter, values[name])).read()
        assert found[name].value == values[name], name
        assert found[name].origin == f"--{parameter.replace('_', '-')}"


def test_all_survive_as_json(values: dict[str, Any]) -> None:
    """A reload reads them again, and `osd config check` in another process."""
    words = [
        word
        for parameter, (table, key) in OPTIONS.items()
        for word in words_of(parameter, values[f"{table}.{key.name}"])
    ]
    made = source(*words)
    again = Source.of("/dev/null", json.loads(json.dumps(made.fields())))
    assert again.read()[1] == made.read()[1]


def test_nothing_said_is_a_default() -> None:
    made = source()
    assert made.given == {}
    assert made.read()[1] == in_force(load(Path("/dev/null")))


def test_options_of_the_module() -> None:
    config, _ = source("--osc-compat", "--script-turn", "500us", "--head-size", "0").read()
    found = target_config(config, module_options=["own=1"]).options
    assert {"osc_compat=1", "script_turn=500", "head_size=0", "durability=process"} < {*found}
    assert found[-1] == "own=1" and not any(each.startswith("allow_bytecode") for each in found)


@pytest.mark.parametrize(
    "words",
    [
        ["--head-size", "2TiB"],
        ["--script-turn", "1s"],
        ["--portal", "localhost"],
        ["--allow", "192.0.2.0/99"],
        ["--allow", "client.example"],
        ["--scrub-days", "-1"],
        ["--isolation", "none"],
        ["--chap-file", "/nonexistent"],
    ],
)
def test_a_wrong_value_is_wrong_usage(words: list[str]) -> None:
    with pytest.raises(click.BadParameter) as wrong:
        source(*words)
    assert words[0] in wrong.value.format_message()


def test_bounds_between_options() -> None:
    with pytest.raises(ConfigError, match=r"--head-low-water.* low_water is above high_water"):
        source("--head-low-water", "96").read()
