# SPDX-License-Identifier: GPL-2.0-or-later
"""The event loop that serves one descriptor first."""

from __future__ import annotations

import asyncio
import os

from pyosd.fronts.osdfs.loop import MountLoop


def test_what_is_scheduled_has_its_turn_while_the_descriptor_is_busy() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MountLoop)
        readable, writable = os.pipe()
        ours, theirs = os.pipe()
        os.write(writable, b"1")  # stays there: the descriptor is never quiet
        served, seen = 0, list[str]()
        done = loop.create_future()

        def serve() -> None:
            nonlocal served
            served += 1
            if served == 3:
                loop.call_soon(seen.append, "soon")
            if served == 5:
                os.write(theirs, b"2")

        def read() -> None:
            seen.append("read")
            loop.remove_reader(ours)
            loop.call_later(0.001, done.set_result, None)

        loop.add_reader(ours, read)
        loop.serve_first(readable, serve)
        await done
        loop.serve_no_more()
        loop.serve_no_more()
        before = served
        await asyncio.sleep(0.001)
        assert served == before
        for each in (readable, writable, ours, theirs):
            os.close(each)
        return seen

    with asyncio.Runner(loop_factory=MountLoop) as runner:
        assert runner.run(work()) == ["soon", "read"]
