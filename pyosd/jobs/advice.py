# SPDX-License-Identifier: GPL-2.0-or-later
"""Advice for frequent exceptions of scripts. Their causes are differences between a sandbox and
one's own machine.  Beside the target's hints, which go by the reason number alone.
"""

from __future__ import annotations

__all__ = ["advice"]

NO_FILES = (
    "a sandbox has no files but Python's own and those it makes in its working directory; data is in "
    "objects (osd.userobject)"
)
NO_DATABASE = (
    "a sandbox has no files of the host: use a database in its working directory, or ':memory:'; "
    "Connection.serialize() and deserialize() move one to and from the bytes of an object"
)
SCRATCH_FULL = (
    "the scratch folder is full: it has a quarter of the job's memory limit (--limit-mem), at most 1 GiB, "
    "for at most 8191 files and folders"
)
NO_NETWORK = (
    "scripts have no network: read and write objects through osd, and pass in what else is needed as "
    "arguments, or fetch it before the job"
)
NO_PROCESSES = (
    "scripts start no processes: use the modules of Python and of the pool's package set; threads need "
    "--limit-procs, and parallel work is an array of jobs (--array)"
)
# how the exception's last line begins, a part of it, what to do; the first that fits
ADVICE = (
    (
        "ModuleNotFoundError: ",
        "",
        "scripts have Python's standard library and the package set of their pool (osd pool show, "
        "osd exec --pool); a module of your own travels with osd exec --with PATH, or modules=",
    ),
    *(
        (f"{name}: ", part, NO_NETWORK)
        for name, part in (
            ("socket.gaierror", ""),
            ("urllib.error.URLError", ""),
            ("ssl.SSLError", ""),
            ("ConnectionRefusedError", ""),
            ("ImportError", "a sandbox has no network"),
            ("OSError", "[Errno 101]"),
        )
    ),
    ("ImportError: ", "a sandbox starts no processes", NO_PROCESSES),
    ("BlockingIOError: ", "[Errno 11]", NO_PROCESSES),
    (
        "PermissionError: ",
        "[Errno 1]",
        "scripts have no network and start no processes: read and write objects through osd; threads "
        "need --limit-procs",
    ),
    ("PermissionError: ", "[Errno 13]", NO_FILES),
    ("FileNotFoundError: ", "[Errno 2]", NO_FILES),
    ("sqlite3.OperationalError: ", "unable to open database file", NO_DATABASE),
    ("OSError: ", "[Errno 30]", NO_FILES),
    ("OSError: ", "[Errno 28]", SCRATCH_FULL),
    ("OSError: ", "[Errno 27]", SCRATCH_FULL),
    ("sqlite3.OperationalError: ", "database or disk is full", SCRATCH_FULL),
    (
        "EOFError: ",
        "reading a line",
        "a script has no standard input; give it arguments after --, they are osd.args",
    ),
    (
        "AttributeError: ",
        "'root' object has no attribute",
        "the zone is the whole store, which has partitions (osd.zone.partitions()): name a partition or "
        "a directory, such as --zone /NAME",
    ),
    (
        "AttributeError: ",
        "'collection' object has no attribute",
        "the zone is a directory or a collection: 'for each in osd.zone' gives its objects; for one "
        "object, name it, such as --zone /NAME/FILE",
    ),
    (
        "AttributeError: ",
        "'userobject' object has no attribute 'userobjects'",
        "the zone is one object: for several, name their partition or directory, such as --zone /NAME",
    ),
    (
        "AttributeError: ",
        "module 'osd' has no attribute",
        "'pydoc osd' and docs/osd-module.md list the names of the module osd",
    ),
    (
        "ValueError: ",
        "source code string cannot contain null bytes",
        "the code is not Python: code for another engine needs a pool of that engine (osd pool show, "
        "--pool)",
    ),
    ("osd.PermissionDenied: ", "outside the job's zone", "--zone says what a script may touch"),
    (
        "osd.NotFound: ",
        "",
        "the object is not there, or not any more; osd obj ls lists those of a partition",
    ),
    (
        "TypeError: ",
        "not JSON serializable",
        "osd.result() takes bytes, and what JSON can say, with numbers and arrays of numpy, dates and "
        "Decimal in it",
    ),
    *(
        (
            f"{name}: ",
            "",
            "nothing of it ran: python3 -m py_compile FILE finds this without a target",
        )
        for name in ("SyntaxError", "IndentationError", "TabError")
    ),
)


def advice(message: str) -> str:
    """A remedy for an exception; "": there is no special one.

    message: the exception's last line, as a job's status has it.
    """
    for begin, part, text in ADVICE:
        if message.startswith(begin) and part in message:
            return text
    return ""
