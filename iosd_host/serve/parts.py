# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of iosd-sandboxd, of the module in tgtd and of iosd-manager, from one configuration.

`osd target serve` and systemd's units use the same.  Pure except that it looks up components and
reads one.  Not here: starting processes (supervise.py, attach.py).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iosd_host.common import paths
from iosd_host.common.build_name import build_name
from iosd_host.config.pools import Pool
from iosd_host.config.schema import Setting
from iosd_host.config.target_keys import DEFAULT_NAME
from iosd_host.serve.chap import Accounts
from iosd_host.serve.master_key import INSIDE
from iosd_host.serve.signers import signers_beside

__all__ = [
    "TargetConfig",
    "default_method",
    "is_loopback",
    "local_key_file",
    "manager_options",
    "module_options",
    "pools_file",
    "sandboxd_command",
]


def is_loopback(host: str) -> bool:
    """Whether an address, as tgtd prints it too, is one that only this host reaches."""
    return host == "::1" or host.startswith("127.")


def default_method(host: str) -> str:
    """The least security method of a store that is made by a target at that address."""
    return "capkey" if is_loopback(host) else "cmdrsp"


@dataclass(frozen=True)
class TargetConfig:
    """Settings of `osd target serve`.

    Attributes:
        data: folder of the store; made when absent.
        portal: address and port to listen on; port 0 lets the kernel choose.
        tgtd: "hardened", "stock" or the path of one; None: hardened where it is built, else stock.
        cpu_share: per cent of a processor that sandboxes get beside four others; None: the default.
        isolation: a level of LEVELS, or "best": the strongest this host can give.
        uid: user and group that tgtd runs as; None: ours.
        uid_base: sandboxes run as the ids behind this one; None: iosd-sandboxd's default.
        pools: as configured; without `default` that is added.
        memory_budget: bytes that the pools' jobs may have together; None: not declared.
        function_signers, function_policy: as the keys of [target].
        options: further options of the module, "key=value".
        module: another file in its place, for tests; None: the one that was built or installed.
        security: least security method of what is made; None: capkey on loopback, else cmdrsp.
        master_key: file of the first master key; None: beside data (master_key_file).
        manager: as Config.manager; None: no resource manager.
    """

    data: Path
    portal: tuple[str, int]
    name: str = DEFAULT_NAME
    ssd: Path | None = None
    unsafe_portal: bool = False
    tgtd: str | None = None
    allow: tuple[str, ...] = ()
    chap: Accounts | None = None
    uid: int | None = None
    uid_base: int | None = None
    cpu_share: int | None = None
    isolation: str = "full"
    pools: tuple[Pool, ...] = ()
    memory_budget: int | None = None
    sandboxes: bool = True
    function_signers: str | None = None
    function_policy: str = "unsigned"
    options: tuple[str, ...] = ()
    module: Path | None = None
    security: str | None = None
    master_key: Path | None = None
    manager: Mapping[str, Setting] | None = None

    @property
    def chap_users(self) -> tuple[str, ...]:
        """Names of all CHAP accounts."""
        if self.chap is None:
            return ()
        outgoing = [self.chap.outgoing] if self.chap.outgoing else []
        return tuple(each.user for each in (*self.chap.incoming, *outgoing))

    @property
    def security_options(self) -> list[str]:
        """Of the module: who may do what, and that nobody serves everybody beyond loopback by mistake."""
        method = self.security or default_method(self.portal[0])
        options = [f"master-key={self.data / INSIDE}", f"security={method}"]
        if not is_loopback(self.portal[0]) and self.security != "nosec":
            options.append("secure=1")
        return options

    @property
    def master_key_file(self) -> Path:
        """File of the first master key, once the target has made it in its store."""
        return self.master_key or self.data.with_name(f"{self.data.name}.master-key")

    @property
    def local_credential(self) -> bool:
        """Whether the user who serves the store gets a credential; not where NOSEC is asked for by name."""
        return self.security != "nosec"

    @property
    def initiators(self) -> tuple[str, ...]:
        """Addresses that may log in: unless said, those that can reach the portal."""
        own = self.loopback and not self.unsafe_portal
        return self.allow or ((self.portal[0],) if own else ("ALL",))

    @property
    def loopback(self) -> bool:
        """Whether the portal is for this host alone.  Raises: ValueError: it is no IP address."""
        return ipaddress.ip_address(self.portal[0]).is_loopback


def sandboxd_command(config: TargetConfig, socket: Path, isolation: str, pools: Path) -> list[str]:
    """The command line of iosd-sandboxd.

    Args:
        isolation: a level, or "best".
        pools: file of the pools, which it reads again at SIGHUP.

    Raises:
        paths.MissingComponent: it is not there.
    """
    command = [str(paths.find_component(paths.SANDBOXD)), "--socket", str(socket)]
    command += ["--isolation", isolation, "--python-dir", str(paths.python_dir())]
    command += ["--pools-file", str(pools)]
    if library := paths.wasmtime_library():
        command += ["--wasmtime", str(library)]
    if config.uid is not None:
        command += ["--uid", str(config.uid)]
    if config.uid_base is not None:
        command += ["--uid-base", str(config.uid_base)]
    if config.cpu_share is not None:
        command += ["--cpu-share", str(config.cpu_share)]
    return command


def manager_options(
    targets: Mapping[str, Path], manager: Mapping[str, Setting], folder: Path
) -> list[str]:
    """The options of iosd-manager.

    Args:
        targets: name and control socket of each.
        manager: as Config.manager.
        folder: of its socket for this host.
    """
    options: list[str] = []
    for name, socket in targets.items():
        options += ["--target", f"{name}={socket}"]
    for endpoint in (f"ipc://{folder / 'manager.sock'}", *manager["listen"].value):
        options += ["--listen", endpoint]
    for key in ("state", "keys"):
        if manager[key].value is not None:
            options += [f"--{key}", manager[key].value]
    if manager["http"].value is not None:
        options += ["--http", manager["http"].value]
    for name in manager["http_names"].value:
        options += ["--http-name", name]
    return options


def pools_file(pools: Sequence[Pool], budget: int | None) -> str:
    """The text of the file in which the module and iosd-sandboxd find their pools."""
    lines = [] if budget is None else [f"budget={budget}"]
    return "".join(f"{line}\n" for line in [*lines, *(pool.line() for pool in pools)])


def local_key_file(control: Path) -> Path:
    """File of the local administrator's key, made by the module beside its socket, in a private
    folder."""
    return control.with_name("local-key")


def module_options(
    config: TargetConfig,
    isolation: str | None,
    sandboxd: Path,
    pools: Path,
    control: Path,
    manager_uid: int | None = None,
) -> str:
    """The option string of bs_iosd.so; tgtd would cut it at a comma.

    Args:
        isolation: what sandboxes must have; None: no script runs.
        sandboxd: socket of iosd-sandboxd.
        pools: file of the pools; that of the signers of functions is beside it.
        control: the socket that the module makes for the resource manager.
        manager_uid: the manager's user; None: that of tgtd.
    """
    options = [*config.security_options, *config.options, f"control={control}"]
    options.append(f"signers={signers_beside(pools)}")
    if manager_uid is not None:
        options.append(f"control_uid={manager_uid}")
    if config.local_credential:
        options.append(f"local-key={local_key_file(control)}")
    if config.ssd is not None:
        options.append(f"ssd={config.ssd}")
    if isolation is not None:
        options += [f"sandboxd={sandboxd}", f"isolation={isolation}", f"pools={pools}"]
        library = paths.wasmtime_library()
        if name := library and build_name(library):
            options.append(f"machine_code={name}")
    return ";".join(options)
