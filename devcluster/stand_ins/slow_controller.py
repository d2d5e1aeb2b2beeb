"""A controller in slow motion, to find what reads too early after a write.

`python -m devcluster.stand_ins.slow_controller ARGUMENTS` is `kontroller ARGUMENTS`, but it delays the controller that it
runs as `devcluster.stand_ins.slow_motion` says.
"""

import runpy
import sys

from devcluster.stand_ins.slow_motion import slow_controllers


def main() -> None:
    """The arguments of `kontroller`."""
    sys.argv = ["kontroller", *sys.argv[1:]]
    with slow_controllers():
        runpy.run_module("kontroller", run_name="__main__")


if __name__ == "__main__":
    main()
