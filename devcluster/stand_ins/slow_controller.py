"""A controller in slow motion, to find tests that read too early after a write.

`python -m devcluster.stand_ins.slow_controller ARGUMENTS` is `kontroller ARGUMENTS`, but delays the controller as
`devcluster.stand_ins.slow_motion` describes.
"""

import runpy
import sys

from devcluster.stand_ins.slow_motion import slow_controllers


def main() -> None:
    """Run `kontroller` with its arguments."""
    sys.argv = ["kontroller", *sys.argv[1:]]
    with slow_controllers():
        runpy.run_module("kontroller", run_name="__main__")


if __name__ == "__main__":
    main()
