"""`python -m devcluster.node.enter NAME PID COMMAND...`: runs COMMAND in the cgroup of the node NAME and the namespaces
of PID.
"""

import os
import sys

from devcluster.node.cgroups import NodeCgroup

_NAMESPACES = ("--net", "--mount", "--pid", "--cgroup", "--uts", "--ipc")


def main() -> None:
    name, first_pid, *command = sys.argv[1:]
    NodeCgroup(name).join()
    os.execvp("nsenter", ["nsenter", "--target", first_pid, *_NAMESPACES, "--", *command])


if __name__ == "__main__":
    main()
