"""Tracebacks of the code under test, without the frames of whoever called it."""

from __future__ import annotations

import os
import traceback

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120 (as frames name files)


def traceback_of(error: BaseException) -> str:
    """What Python would print, but nothing of this package: a reader can mend none of that."""
    told = traceback.TracebackException.from_exception(error)
    seen: set[int] = set()
    left: list[traceback.TracebackException | None] = [told]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if one.stack is not None:
            frames = [frame for frame in one.stack if not frame.filename.startswith(_OWN)]
            one.stack = traceback.StackSummary.from_list(frames)
        left += [one.__cause__, one.__context__]
    return "".join(told.format())
