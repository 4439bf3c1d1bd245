# SPDX-License-Identifier: GPL-2.0-or-later
"""Why jobs wait or end: every reason number with its cause, what to do, and whether to try again.

Numbers, labels and hints are the target's (target/exec/record/reasons.h, where a test compares them);
the rest is what iosd-reasons(7), `osd reasons` and `osd job why` say beyond them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BLOCKS", "REASONS", "Reason"]

BLOCKS = {
    1: "queue and hold",
    2: "the script",
    3: "limits",
    4: "sandbox and host",
    5: "storage",
    6: "security",
    9: "internal",
}
"""Meanings of the hundreds of reason numbers."""


@dataclass(frozen=True)
class Reason:
    """One reason.

    state: name of the state a job ends in for it, "" where it only waits.  label: what happened, in
    few words; hint: what to do; cause: how it comes about; again: whether trying again helps.
    """

    number: int
    state: str
    label: str
    hint: str
    cause: str
    again: str

    def paragraph(self) -> list[str]:
        """The explanation, in lines of any length."""
        ends = f"The job ends {self.state}." if self.state else "The job waits."
        return [
            f"{self.number}: {self.label}",
            f"{ends} {self.cause}",
            f"What to do: {self.hint}.",
            f"Again: {self.again}",
        ]


SAME = "no; the same script on the same data ends the same way."
AFTER = "yes, once that is done."
ITSELF = "it continues by itself."

# number, state, label, hint, cause, again
REASONS: dict[int, Reason] = {
    row[0]: Reason(*row)
    for row in (
        (
            101,
            "",
            "waiting for a free sandbox",
            "other jobs are ahead; the queue position says how many",
            "All sandboxes are busy. Jobs of different principals take turns, then the higher priority "
            "goes first, then the earlier job.",
            ITSELF,
        ),
        (
            102,
            "",
            "waiting for the sandbox service",
            "iosd-sandboxd is not connected; start it, the job then runs by itself",
            "The target accepts jobs and keeps them though there is nothing that could run them.",
            ITSELF,
        ),
        (
            103,
            "",
            "held on request",
            "release the job to let it run",
            "It was submitted with --hold, or held afterwards.",
            "osd job release JOB lets it run.",
        ),
        (
            104,
            "",
            "waiting for another attempt",
            "the last attempt lost its sandbox; the next one starts by itself",
            "The system failed during the job. The job had changed nothing, or it can run twice.",
            ITSELF,
        ),
        (
            105,
            "CANCELLED",
            "cancelled before it started",
            "submit it again if it is still wanted",
            "Somebody cancelled it while it was queued or held. Nothing of it has run.",
            "yes, if it is still wanted.",
        ),
        (
            106,
            "CANCELLED",
            "the device was formatted",
            "store the data and submit the job again",
            "FORMAT OSD ends all jobs, and removes what they worked on.",
            AFTER,
        ),
        (
            107,
            "CANCELLED",
            "killed on request",
            "what the script had written stays written",
            "Somebody killed it. osd.Ended was raised in the script, which then had its grace time.",
            "yes, if it is still wanted and can run twice.",
        ),
        (
            108,
            "CANCELLED",
            "the waiting command was aborted",
            "it was submitted to end with its command; submit it without that flag instead",
            "The initiator aborted the EXEC that waited for it, or reset the logical unit, and the job "
            "was marked to end with it.",
            "yes.",
        ),
        (
            109,
            "",
            "waiting for another job",
            "it starts by itself when the jobs it was submitted after have ended as asked",
            "It was submitted with --after. The job's status names the first it still waits for.",
            ITSELF,
        ),
        (
            110,
            "FAILED",
            "a job it was to run after did not complete",
            "the message names that job; see why it ended so, then submit both again",
            "It was submitted to run after the COMPLETED end of another, which ended otherwise. Nothing "
            "of it has run.",
            AFTER,
        ),
        (
            111,
            "FAILED",
            "a member of the array did not complete",
            "the message says how many ended how; see which: osd ps --members ARRAY",
            "It stands for an array of jobs, all of which have ended, at least one otherwise than "
            "COMPLETED or CANCELLED. Each member's own status says why.",
            AFTER,
        ),
        (
            112,
            "",
            "waiting for its turn in the array",
            "as many members run as the array may have at once; it starts when one of them ends",
            "The array was submitted with a limit on how many of its members run at a time.",
            ITSELF,
        ),
        (
            113,
            "",
            "waiting for its pool, which does not serve",
            "the administrator sees why with osd pool show; it then runs by itself",
            "The pool's package set was changed or is missing, or the pool was removed from the "
            "configuration. The hint of the job's status says which. The target retries the pool at "
            "intervals.",
            ITSELF,
        ),
        (
            114,
            "",
            "waiting for a sandbox, and none can be made now",
            "the host is short of processes, memory or descriptors; it then runs by itself",
            "The last sandbox that was asked for did not come up, or iosd-sandboxd has not answered "
            "for a second. The hint of the job's status says which and why; another is asked for "
            "after a pause of up to 5 s.",
            ITSELF,
        ),
        (
            115,
            "",
            "waiting for its pool, which is paused",
            "the administrator has paused it; it runs by itself once the pool is resumed",
            "A paused pool takes jobs and starts none. Running jobs continue. osd pool resume ends it.",
            ITSELF,
        ),
        (
            116,
            "CANCELLED",
            "not started before it expired",
            "release held jobs in time, or submit with a longer expiry",
            "It was held, or waited for other jobs, for as long as its expiry says, counted from its "
            "submission: 7 days unless --expire said otherwise. Its record is then kept as long again.",
            "yes, with a longer --expire.",
        ),
        (
            117,
            "CANCELLED",
            "a job it was to run after did not fail",
            "it was submitted to run only if that job failed, and that job completed",
            "It was submitted with --after JOB:failed. That job COMPLETED, so this one can never start. "
            "Nothing of it has run.",
            "no; there is nothing to do, unless the job's failure was expected.",
        ),
        (
            118,
            "",
            "held until its begin time",
            "it starts by itself then; release it to start it now",
            "It was submitted with --begin. The job's status names the time, by the target's clock.",
            ITSELF,
        ),
        (
            119,
            "CANCELLED",
            "the client is expected to run it sooner",
            "run it at the client: osd exec --where local, or --where auto, which does both",
            "It was submitted as a job that changes no objects, with what it would take at the client. "
            "When it could start, the target expected to take longer. Nothing of it has run.",
            "yes; the target decides anew, by its load at that time.",
        ),
        (
            120,
            "CANCELLED",
            "its pool would be too late",
            "the pool has a deadline; submit it later, to another pool, or with --where local",
            "The administrator has set how long after its submission a job of the pool may end. This one "
            "waited for a slot until it could not end by then. Nothing of it has run. osd pool show has "
            "the deadline.",
            "yes, when fewer jobs wait.",
        ),
        (
            201,
            "FAILED",
            "the script raised an exception",
            "the traceback names the line; the same input will most likely fail again",
            "An exception left the script's main thread. osd job report has the traceback.",
            SAME,
        ),
        (
            202,
            "FAILED",
            "the script exited with a code other than 0",
            "see exit code and stderr",
            "It called sys.exit() with a number other than 0, or with a text, which is on stderr.",
            "as the script means its code.",
        ),
        (
            203,
            "FAILED",
            "the script's process died by a signal",
            "a crash in native code, or recursion beyond the stack; stderr may say more",
            "The interpreter was brought down: deep recursion in C, os.abort(), a bug in a C module, or "
            "a system call that scripts may not make.",
            SAME,
        ),
        (
            204,
            "FAILED",
            "the script's process ended without a word",
            "os._exit or the like was called; end the script by returning or by sys.exit",
            "The process ended without a report, so the outcome of the script is unknown.",
            SAME,
        ),
        (
            205,
            "FAILED",
            "the code could not be read",
            "compress it again with zlib, or compile byte-code with the target's release of Python",
            "The packed code is no whole zlib stream, or the byte-code is damaged or another release's. "
            "Not a line of it has run.",
            SAME,
        ),
        (
            301,
            "TIMEOUT",
            "wall-clock limit reached",
            "raise the wall limit, or split the work into smaller jobs",
            "The time since it started exceeded --limit-wall, 60 s by default, at most a day. "
            "osd.Ended was raised in the script, which then had its grace time.",
            "with a higher limit, if repeated writes do no harm.",
        ),
        (
            302,
            "LIMIT_EXCEEDED",
            "processor-time limit reached",
            "raise the cpu limit, or split the work into smaller jobs",
            "Its processor time, user and system, passed --limit-cpu, the wall limit by default.",
            "with a higher limit.",
        ),
        (
            303,
            "OUT_OF_MEMORY",
            "memory limit reached",
            "raise the memory limit, or read the data in smaller blocks",
            "The script was refused memory, or the kernel ended it, at --limit-mem, 256 MiB by "
            "default. The status has the peak. osd.userobject.data.blocks() reads in blocks.",
            "with a higher limit, or less data at a time.",
        ),
        (
            304,
            "LIMIT_EXCEEDED",
            "standard output passed its limit",
            "write large results to an object instead of printing them, or raise the output limit",
            "It printed more than --limit-output, 64 MiB by default. Earlier output is "
            "kept; nothing is ever cut silently.",
            "with a higher limit.",
        ),
        (
            305,
            "LIMIT_EXCEEDED",
            "thread limit reached",
            "raise the limit on threads (limit-procs, at most 16), or on memory: each has a stack of "
            "8 MiB",
            "It started more threads than it may have, one by default, or more than its "
            "memory holds.",
            "with a higher limit.",
        ),
        (
            306,
            "LIMIT_EXCEEDED",
            "open-file limit reached",
            "close files and objects when done with them; at most 256 can be open",
            "It holds more descriptors than it may: 256 by default.",
            SAME,
        ),
        (
            307,
            "LIMIT_EXCEEDED",
            "input/output limit reached",
            "raise the io limit",
            "It read and wrote more bytes of objects than --limit-io; there is none unless asked for.",
            "with a higher limit.",
        ),
        (
            308,
            "LIMIT_EXCEEDED",
            "result passed its limit",
            "write large results to an object and return its id",
            "The argument of osd.result() is larger than the limit of results.",
            SAME,
        ),
        (
            309,
            "LIMIT_EXCEEDED",
            "the code is too large when expanded",
            "keep data out of the script: store it in an object and read it there",
            "Packed code expands to at most 16 MiB. Not a line of it has run.",
            SAME,
        ),
        (
            401,
            "SANDBOX_LOST",
            "the sandbox was lost",
            "not the script's fault; it was tried as often as allowed, submit it again",
            "The sandbox's process ended during the job, in each of its attempts.",
            "yes.",
        ),
        (
            402,
            "SANDBOX_LOST",
            "the sandbox was lost after the script had written",
            "check what was written, then submit it again; mark jobs that may run twice idempotent",
            "The system failed under the job, which had changed objects, so it was not run again by "
            "itself.",
            "yes, if repeated writes do no harm. --idempotent declares that in advance.",
        ),
        (
            403,
            "SANDBOX_LOST",
            "the sandbox service died",
            "see the log of iosd-sandboxd; submit the job again",
            "iosd-sandboxd ended, and all sandboxes with it.",
            "yes.",
        ),
        (
            404,
            "FAILED",
            "the sandbox sent something a sandbox never sends",
            "the script interferes with its own runtime; it was ended",
            "A frame from the sandbox made no sense: the script, or native code it ran, wrote to the "
            "memory it shares with the target. This is treated as an attack.",
            SAME,
        ),
        (
            405,
            "SANDBOX_LOST",
            "the target was restarted while the job ran",
            "submit it again; mark jobs that may run twice idempotent",
            "The target came up again and found the job running, with no attempt left or with objects "
            "changed.",
            "yes, if repeated writes do no harm. --idempotent declares that in advance.",
        ),
        (
            406,
            "SANDBOX_LOST",
            "no sandbox could be made",
            "the limits asked for may be more than the host gives; see the log of iosd-sandboxd",
            "iosd-sandboxd could not start a sandbox, or not with these limits.",
            "with lower limits, or once the host has room.",
        ),
        (
            501,
            "FAILED",
            "no space left for output or result",
            "free space or raise the quota, then submit again",
            "What the script printed or left could not be stored: a quota, or the device, is full.",
            AFTER,
        ),
        (
            502,
            "FAILED",
            "output or result could not be stored",
            "see the log of the target",
            "The target's storage failed under the job's output.",
            "once the storage is repaired.",
        ),
        (
            601,
            "FAILED",
            "the job's rights were revoked",
            "ask for a new capability and submit again; a partition may demand one by now",
            "Its capability expired, an object's policy changed, or a partition demands more than NOSEC.",
            AFTER,
        ),
        (
            605,
            "FAILED",
            "the job's zone was removed",
            "submit it again for another zone",
            "Somebody removed the collection, or object, that its rights end at.",
            "for another zone.",
        ),
        (
            901,
            "FAILED",
            "internal failure of the target",
            "the cause is in the target's log",
            "Something happened that must not: a bug. osd job report has what to attach to a report.",
            "perhaps; report it in any case.",
        ),
    )
}
