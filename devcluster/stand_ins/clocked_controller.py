"""A controller whose wall clock a test sets while it runs (`devcluster.machines.set_clock`).

`python -m devcluster.stand_ins.clocked_controller SETTINGS_FILE`, in the environment of a clock. `time.sleep` waits for
a lock here. The original asks the kernel to wait until a moment of the monotonic clock, and libfaketime takes that for
a moment of the wall clock. Everything else is as in the real controller, including OpenSSL's view of the time.
"""

import runpy
import sys
import threading
import time


def main() -> None:
    """Run the controller with `SETTINGS_FILE`."""
    time.sleep = _wait  # type: ignore[assignment]  # nobody sleeps for what is only like a number
    sys.argv = ["kontroller", "controller", "run", "--settings", sys.argv[1]]
    runpy.run_module("kontroller", run_name="__main__")


def _wait(seconds: float, /) -> None:
    threading.Event().wait(seconds)


if __name__ == "__main__":
    main()
