"""A controller whose wall clock a tester sets while it runs (`devcluster.machines.set_clock`).

`python -m devcluster.stand_ins.clocked_controller SETTINGS_FILE`, in the environment of a clock. `time.sleep` waits for a
lock here: it asks the kernel to wait until a moment of the clock that only measures, which libfaketime takes for one of
the wall clock. Nothing else is other than in a whole controller, down to what OpenSSL thinks that the time is.
"""

import runpy
import sys
import threading
import time


def main() -> None:
    """`SETTINGS_FILE`"""
    time.sleep = _wait  # type: ignore[assignment]  # nobody sleeps for what is only like a number
    sys.argv = ["kontroller", "controller", "run", "--settings", sys.argv[1]]
    runpy.run_module("kontroller", run_name="__main__")


def _wait(seconds: float, /) -> None:
    threading.Event().wait(seconds)


if __name__ == "__main__":
    main()
