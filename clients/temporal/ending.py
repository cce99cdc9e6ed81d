"""Ends a program that used the Python SDK.

The SDK's own threads may still run when the interpreter is taken down, and then abort a program that has done all of its
work ("PyGILState_Release: thread state must be current"). So it leaves without that, after everything was said.
"""

import asyncio
import os
import sys


def run(work) -> None:
    """Does the work. An exception ends the program as usual."""
    asyncio.run(work)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
