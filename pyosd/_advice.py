# SPDX-License-Identifier: GPL-2.0-or-later
"""What to do about the exceptions that scripts most often end with, because a sandbox is not one's own
machine.  Beside the target's hints, which go by the reason number alone.
"""

from __future__ import annotations

__all__ = ["advice"]

NO_FILES = (
    "a sandbox has no files but Python's own; data is in objects (osd.userobject), and io.BytesIO "
    "serves as a scratch file"
)
# how the exception's last line begins, a part of it, what to do; the first that fits
ADVICE = (
    (
        "ModuleNotFoundError: ",
        "",
        "scripts have Python's standard library and the package set of their pool (osd pool show, "
        "osd exec --pool); a script travels alone, so a module of your own goes into it",
    ),
    (
        "PermissionError: ",
        "[Errno 1]",
        "a sandbox has no network and starts no processes; a script has the objects of its zone, and "
        "threads with --limit-procs",
    ),
    ("PermissionError: ", "[Errno 13]", NO_FILES),
    ("FileNotFoundError: ", "[Errno 2]", NO_FILES),
    ("OSError: ", "[Errno 30]", NO_FILES),
    (
        "EOFError: ",
        "reading a line",
        "a script has no standard input; give it arguments after --, they are osd.args",
    ),
    ("osd.PermissionDenied: ", "outside the job's zone", "--zone says what a script may touch"),
    (
        "osd.NotFound: ",
        "",
        "the object is not there, or not any more; osd obj ls lists those of a partition",
    ),
    ("TypeError: ", "not JSON serializable", "osd.result() takes bytes, and what JSON can say"),
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
    """What to do about an exception, "" where there is nothing special to say.

    message: the exception's last line, as a job's status has it.
    """
    for begin, part, text in ADVICE:
        if message.startswith(begin) and part in message:
            return text
    return ""
