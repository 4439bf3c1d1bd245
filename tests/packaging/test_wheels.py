# SPDX-License-Identifier: GPL-2.0-or-later
"""What pip installs: the client alone works without a host's files and requirements; sources are complete.

The client is built and installed without the network.  Building a host takes longer, so that is in
wheels_campaign.py (``make wheels-test``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pyosd.cli import main
from pyosd.cli.frame import brought
from tests.serving import Serving
from tests.wasm_kit import needs_compiler_of_stock

ROOT = Path(__file__).resolve().parents[2]
PIP = ROOT / "packaging" / "pip"
VERSION = (ROOT / "VERSION").read_text().strip()
# click and rich, with what they need themselves
REQUIRED = ("click", "rich", "markdown_it", "mdurl", "pygments")


def run(*command: object, cwd: Path = ROOT, target: str | None = None) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"IOSD_TARGET": target} if target else {}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def make_wheels(folder: Path, *projects: str) -> Path:
    run("env", f"PYTHON={sys.executable}", ROOT / "tools" / "make-wheels.sh", folder, *projects)
    return folder


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the client's source distribution and wheel."""
    return make_wheels(tmp_path_factory.mktemp("dist"), "iosd")


@pytest.fixture(scope="module")
def installed(client: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the client, its requirements and nothing else."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    [wheel] = client.glob("*.whl")
    options = ("--no-index", "--no-deps", "--disable-pip-version-check", "-q")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel)
    [site] = folder.glob("lib/python*/site-packages")
    for name in REQUIRED:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None
        (site / name).symlink_to(Path(spec.origin).parent)
    return folder / "bin"


def sources(archive: Path) -> Iterator[str]:
    """The files of a source distribution, without the folder that all are in."""
    with tarfile.open(archive) as tar:
        for member in tar:
            assert member.isfile() or member.isdir(), f"{member.name} is a link"
            if member.isfile():
                yield member.name.partition("/")[2]


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        [name] = [each for each in files.namelist() if each.endswith(".dist-info/METADATA")]
        return Parser().parsestr(files.read(name).decode())


def committed(*folders: str) -> set[str]:
    """The files of these folders that are sources, in the working tree."""
    found = {
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".so")
    }
    return {str(path.relative_to(ROOT)) for path in found}


def test_the_clients_wheel(client: Path) -> None:
    [wheel] = client.glob("*.whl")
    assert re.fullmatch(rf"iosd-{VERSION}-cp311-abi3-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"pyosd", "osd", "osd_program", f"iosd-{VERSION}.dist-info"}
    expected = {
        name
        for name in committed("pyosd")
        if name.endswith((".py", ".pyi", ".wasm", "py.typed")) and not name.startswith("pyosd/_")
    }
    assert expected - set(names) == set()
    assert "pyosd/_core.abi3.so" in names and "osd/__init__.py" in names
    about = metadata(wheel)
    required = [each for each in about.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert {re.split(r"[<>=]", each)[0] for each in required} == {"click", "rich"}
    assert about["License"] == "GPL-2.0-or-later" and about["Author"]


def test_the_clients_core_needs_libc_alone(installed: Path) -> None:
    [core] = installed.parent.rglob("_core.abi3.so")
    needed = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", core))
    assert set(needed) <= {"libc.so.6", "libpthread.so.0"}


def test_the_clients_source_is_complete(client: Path) -> None:
    [archive] = client.glob("*.tar.gz")
    names = set(sources(archive))
    assert committed("pyosd") - names <= {"pyosd/README.md"}
    for name in ("VERSION", "LICENSE", "README.md", "pyproject.toml", "target/flags.cmake"):
        assert name in names
    assert not [name for name in names if name.startswith(("iosd_", "sandbox/", "tests/"))]


def test_the_clients_source_has_that_of_compiled_functions(client: Path, tmp_path: Path) -> None:
    """They are compiled from the source distribution alone, to the same bytes."""
    needs_compiler_of_stock()
    [archive] = client.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path)
    [top] = tmp_path.iterdir()
    kit, made = top / "examples" / "functions", "pyosd/functions/stock/image.wasm"
    (top / made).unlink()
    run("make", "-C", kit, f"OUT={tmp_path / 'out'}", "stock")
    assert (top / made).read_bytes() == (ROOT / made).read_bytes()


def test_what_links_of_the_sources_lead_to_is_copied_for_wheels() -> None:
    text = (ROOT / "tools" / "make-wheels.sh").read_text()
    [words] = re.findall(r'^copied="([^"]*)"', text, re.MULTILINE)
    copied = [ROOT / word for word in words.replace("\\\n", " ").split()]
    links = [path for folder in copied for path in folder.rglob("*") if path.is_symlink()]
    assert ROOT / "sandbox" / "java" / "api" in links
    for link in links:
        assert any(link.resolve().is_relative_to(folder) for folder in copied), link


@pytest.mark.tgtd
def test_the_client_alone_uses_a_target(installed: Path, serving: Serving, tmp_path: Path) -> None:
    osd = installed / "osd"
    assert run(osd, "--version", cwd=tmp_path).strip() == f"iosd {VERSION}"
    pid = run(osd, "part", "create", cwd=tmp_path, target=serving.url).strip()
    assert pid in run(osd, "part", "ls", cwd=tmp_path, target=serving.url)
    module = "import osd, pyosd; print(osd is pyosd.osd)"
    assert run(installed / "python", "-c", module, cwd=tmp_path) == "True\n"


def test_the_client_alone_names_the_package_to_install(installed: Path, tmp_path: Path) -> None:
    texts = {
        ("target", "serve"): "osd target serve: not installed, install iosd-host",
        ("secmgr", "init"): "osd secmgr init: not installed, install iosd-secmgr",
        ("doctor",): "osd doctor: not installed, install iosd-host",
        ("config", "show"): "osd config: not installed, install iosd-host",
    }
    for words, text in texts.items():
        done = subprocess.run(
            [installed / "osd", *words, "--help"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 2 and text in done.stderr
    shown = run(installed / "osd", "--help", cwd=tmp_path)
    assert not re.search(r"^  (config|doctor|manager) ", shown, re.MULTILINE)


def points(project: str) -> dict[str, str]:
    text = (PIP / project / "pyproject.toml").read_text()
    found = tomllib.loads(text)["project"]["entry-points"]["iosd.commands"]
    assert isinstance(found, dict)
    return found


def test_the_client_knows_which_package_brings_a_verb() -> None:
    assert set(brought.VERBS) == {path.parent.name for path in PIP.glob("*/pyproject.toml")}
    for project, verbs in brought.VERBS.items():
        assert sorted(verbs) == sorted(points(project))


def test_verbs_that_were_brought_are_verbs() -> None:
    for project in brought.VERBS:
        for name in points(project):
            result = CliRunner().invoke(main, [*name.split("."), "--help"])
            assert result.exit_code == 0, f"{name}: {result.output}"


def test_a_noun_is_hidden_if_all_its_verbs_are_brought() -> None:
    context = click.Context(main)
    for noun in brought.NOUNS:
        command = main.get_command(context, noun)
        assert isinstance(command, click.Group)
        own = set(command.list_commands(context))
        assert own == {name.partition(".")[2] for name in points("iosd-host") if f"{noun}." in name}
