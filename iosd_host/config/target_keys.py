# SPDX-License-Identifier: GPL-2.0-or-later
"""The keys of [target] and [heads]: one row each.

A row is also an option of `osd target serve` (cli/serve_options.py), a line of the default file and of
iosd.toml(5) (tools/configdoc.py), and an option of the module in tgtd where it names one.
"""

from __future__ import annotations

from iosd_host.common import logs
from iosd_host.config.packages import DEFAULT_SETS
from iosd_host.config.schema import (
    Choice,
    Count,
    Duration,
    Key,
    Size,
    file,
    flag,
    iscsi_name,
    networks,
    path,
    portal,
    signing_policy,
    text,
)

__all__ = ["DEFAULT_NAME", "HEADS_KEYS", "OPTIONS", "TARGET_KEYS", "option_of"]

DEFAULT_NAME = "iqn.2026-11.iosd:target"
LEVELS = ("full", "no-cgroup", "no-userns", "minimal", "best")
METHODS = ("nosec", "capkey", "cmdrsp", "alldata")
RATE = Size(64 << 10, 1 << 40)
RATE_DEFAULT = 64 << 20

TARGET_KEYS = (
    Key(
        "data",
        path,
        None,
        "folder of the store",
        help="Folder of the store; created if absent.",
        example='"/var/lib/iosd"',
    ),
    Key(
        "ssd",
        path,
        None,
        "folder on an SSD for the heads (first bytes) of objects",
        example='"/mnt/ssd/iosd"',
    ),
    Key(
        "portal",
        portal,
        "127.0.0.1:3260",
        "address and port to listen on",
        help="Address and port where initiators log in.",
        metavar="ADDRESS[:PORT]",
    ),
    Key(
        "unsafe_portal",
        flag,
        False,
        "allow a portal that is not loopback with a tgtd that is not hardened",
    ),
    Key(
        "tgtd",
        text,
        None,
        "iSCSI daemon: stock, hardened, or a path",
        help="Program to run as iSCSI daemon: the distribution's, or that of 'make tgtd' "
        "(docs/hardened-tgtd.md).",
        unset="hardened, if built",
        example='"stock"',
        metavar="PATH|stock|hardened",
        envvar="IOSD_TGTD",
    ),
    Key(
        "allow",
        networks,
        None,
        "addresses or networks of initiators that may log in",
        help="Address or network of initiators that may log in.  May be given more than once.",
        example='["127.0.0.1"]',
        metavar="ADDRESS",
    ),
    Key(
        "name",
        iscsi_name,
        DEFAULT_NAME,
        "iSCSI name of the target",
        help="iSCSI name of the target.",
        metavar="NAME",
    ),
    Key(
        "chap_user",
        text,
        None,
        "CHAP name that initiators log in with",
        help="CHAP name that initiators log in with; the secret is in IOSD_CHAP_SECRET or "
        "--chap-secret-file.",
        example='"alice"',
        metavar="NAME",
    ),
    Key(
        "chap_secret_file",
        file,
        None,
        "file with the secret of chap_user",
        help="File with the secret of --chap-user, readable by its owner alone.",
        example='"/etc/iosd/chap_secret"',
    ),
    Key(
        "chap_file",
        file,
        None,
        "file with CHAP accounts and the target's own account",
        help="TOML file with CHAP accounts and the target's own account, readable by its owner "
        "alone.",
        example='"/etc/iosd/chap.toml"',
    ),
    Key(
        "security",
        Choice(*METHODS),
        None,
        "lowest security method of a store that is created now",
        help="Lowest security method of a store that is created or formatted now; nosec: "
        "every user of this host is an administrator (docs/security.md).",
        unset="capkey on loopback, else cmdrsp",
        example='"capkey"',
    ),
    Key(
        "master_key",
        path,
        None,
        "file for a new store's master key [DATA.master-key]",
        help="File for a new store's master key, out of tgtd's reach.",
        unset="DATA.master-key",
        example='"/etc/iosd/master.key"',
    ),
    Key(
        "uid",
        Count(0, 2**31 - 1),
        None,
        "user to run tgtd as",
        help="User to run tgtd as.",
        unset="as root: the owner of DATA, or one of its own for a new store",
        example="64733",
    ),
    Key(
        "uid_base",
        Count(1, 2**31 - 2049),
        None,
        "user id before the first one of the sandboxes",
        help="User id before the first one of the sandboxes; no other user of this host "
        "may have the ids that follow.",
        unset="2130706432",
        example="2130706432",
    ),
    Key(
        "workers",
        Count(1, 64),
        None,
        "number of threads that run commands",
        example="4",
        module="workers",
    ),
    Key(
        "isolation",
        Choice(*LEVELS),
        "full",
        "least isolation of scripts",
        help="Least isolation of scripts; best: the most that this host supports "
        "(docs/security.md).",
    ),
    Key(
        "cpu_share",
        Count(0, 90),
        None,
        "least per cent of a busy processor for scripts",
        help="Per cent of a processor that all scripts together get at least while four "
        "other programs compute on it; 0: idle time only (docs/serving.md).",
        unset="5",
        example="5",
        metavar="PERCENT",
    ),
    Key(
        "allow_bytecode",
        flag,
        False,
        "accept jobs that are .pyc files",
        help="Accept jobs that are .pyc files; trust these as much as native code "
        "(docs/security.md).",
        module="allow_bytecode",
    ),
    Key(
        "queue_per_principal",
        Count(1, 10_000),
        None,
        "most jobs of one principal in the queue; also the longest array",
        help="Most jobs that one principal may have in the queue; also the longest array.",
        unset="1000",
        example="1000",
        module="queue_principal",
    ),
    Key(
        "function_signers",
        path,
        None,
        "list of the signers of functions, in the form of ssh-keygen's allowed_signers",
        help="List of the signers of functions, in the form of ssh-keygen's allowed_signers "
        "(docs/functions.md).",
        example='"/etc/iosd/function_signers"',
    ),
    Key(
        "function_policy",
        signing_policy,
        "unsigned",
        "signatures that functions need: unsigned, signed or named, also as ENGINE:LEVEL",
        help="Signatures that functions need: unsigned (none), signed (by a listed key), named (by "
        "a key listed for the engine); ENGINE:LEVEL for one engine, words separated by spaces.",
        metavar="WORDS",
    ),
    Key(
        "function_memory",
        Size(0, 1 << 60),
        None,
        "most memory that active functions may reserve together; 0: no bound",
        help="Most memory that active functions may reserve together, by their limits; 0: no bound "
        "(docs/functions.md).",
        unset="0",
        example='"16GiB"',
        module="function_memory",
    ),
    Key(
        "kept_results",
        Size(0, 1 << 40),
        None,
        "most bytes of what functions have computed, kept for later READs; 0: none",
        help="Most bytes of what functions have computed, kept for later READs on the SSD or in the "
        "data directory; 0: none (docs/views.md).",
        unset="1GiB",
        example='"16GiB"',
        module="kept_results",
    ),
    Key("no_sandboxes", flag, False, "serve storage only; run no scripts"),
    Key(
        "durability",
        Choice("process", "sync"),
        "process",
        "what an acknowledged write survives: a crash (process), or power loss (sync)",
        help="Faults that an acknowledged write survives: a crash of the target, or power loss too.",
        module="durability",
    ),
    Key(
        "io",
        Choice("cached", "direct"),
        "cached",
        "read and write object data through the page cache or directly",
        help="How to read and write object data: through the page cache, or directly "
        "(docs/tiers.md).",
        module="io",
    ),
    Key(
        "checksums",
        Choice("as-stored", "on", "off"),
        "as-stored",
        "checksums of every 4 KiB of data",
        help="Checksums of every 4 KiB of data: as the store has it (a new one: off), on, "
        "or off (docs/reliability.md).",
        module="checksums",
    ),
    Key(
        "verify",
        Choice("scrub", "always"),
        "scrub",
        "when to compare data with its checksums",
        help="When to compare data with its checksums: in the scrub, or also at every READ.",
        module="verify",
    ),
    Key(
        "scrub_rate",
        RATE,
        RATE_DEFAULT,
        "most bytes per second that the scrub reads",
        module="scrub_rate",
    ),
    Key(
        "scrub_days",
        Count(0, 3650),
        30,
        "days from the end of one scrub to the start of the next; 0: only on request",
        module="scrub_days",
    ),
    Key(
        "script_turn",
        Duration(0, 0.01),
        1000,
        "time slice of a script while commands arrive",
        help="Time slice of a script on a processor while commands arrive; 0s: the kernel's own.",
        module="script_turn",
    ),
    Key(
        "osc_compat",
        flag,
        False,
        "use OSC's dialect where it contradicts OSD-2",
        help="Use OSC's dialect where it contradicts OSD-2 (docs/commands.md).",
        module="osc_compat",
    ),
    Key(
        "log_format",
        Choice(*logs.FORMATS),
        None,
        "format of the log: text or json",
        help="Format of the log on stderr: text lines or JSON objects (docs/logs.md).",
        unset="text",
        example='"text"',
        envvar="IOSD_LOG_FORMAT",
    ),
    Key(
        "log_level",
        Choice(*logs.LEVELS),
        None,
        "lowest level to log",
        help="Lowest level to log.  info logs at most 20 jobs a second, debug all of them.",
        unset="info; warning on a terminal",
        example='"info"',
        envvar="IOSD_LOG_LEVEL",
    ),
    Key(
        "memory_budget",
        Size(1, 1 << 60),
        None,
        "memory limit of the jobs of all pools together",
        unset="no limit",
        example='"4GiB"',
    ),
    Key("package_sets", path, str(DEFAULT_SETS), "folder that holds the package sets"),
)

HEADS_KEYS = (
    Key(
        "size",
        Size(0, 1 << 40),
        None,
        "head size of new objects [as the store was formatted]",
        help="Bytes of a new object that are stored on the SSD; 0 is allowed.",
        unset="as formatted; 2MiB",
        example='"2MiB"',
        module="head_size",
    ),
    Key(
        "policy",
        Choice("first", "small-only", "off"),
        "first",
        "which new objects begin on the SSD",
        help="New objects that begin on the SSD: all, those not longer than the head size, or none.",
        module="heads",
    ),
    Key(
        "high_water",
        Count(1, 99),
        95,
        "per cent of the SSD above which new heads are stored on the data disk",
        help="Per cent of the SSD in use above which new heads are stored in --data.",
        module="head_high",
    ),
    Key(
        "low_water",
        Count(1, 99),
        90,
        "per cent of the SSD below which heads move back to it",
        help="Per cent of the SSD in use below which heads move back to it.",
        module="head_low",
    ),
    Key(
        "rate",
        RATE,
        RATE_DEFAULT,
        "most bytes per second that move between SSD and data disk",
        help="Most bytes per second that move between the SSD and --data.",
        module="head_rate",
    ),
    Key(
        "on_ssd_loss",
        Choice("fail", "read-through"),
        "fail",
        "without the SSD folder: do not start, or serve the rest",
        help="Behaviour without the SSD folder: do not start, or serve the data in --data "
        "(docs/tiers.md).",
        module="on_ssd_loss",
    ),
)


def option_of(table: str, name: str) -> str:
    """The parameter of `osd target serve` for a key: data, head_size, on_ssd_loss."""
    return name if table == "target" or name == "on_ssd_loss" else f"head_{name}"


# parameter of `osd target serve` -> table, row
OPTIONS = {option_of("target", key.name): ("target", key) for key in TARGET_KEYS}
OPTIONS |= {option_of("heads", key.name): ("heads", key) for key in HEADS_KEYS}
