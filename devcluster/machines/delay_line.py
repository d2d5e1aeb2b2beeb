"""A line that returns each packet after a delay, in the order of arrival.

`python -m devcluster.machines.delay_line INTERFACE DELAY_S` makes a TUN interface. Packets that are routed there come
out later and are routed on. A queue with a limited rate (`tc tbf`) only delays large amounts, and the kernel's own
delay (`tc netem`) is missing in some kernels.
"""

import fcntl
import os
import select
import struct
import sys
import time
from collections import deque
from typing import Final

from devcluster.clusters.run_folder import RunFolder
from devcluster.machines.namespaces import Namespace
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Startable

_SET_INTERFACE: Final = 0x400454CA
_PACKETS: Final = 0x0001 | 0x1000
"""IP packets, without a header of the interface's own."""
_LARGEST_PACKET: Final = 65_536
_MOST_HELD: Final = 20_000
"""Further packets are dropped, as by a full queue."""


class DelayLine(Startable):
    """A delay line in a namespace; packets that are routed to `interface` are delayed."""

    interface: Final = "delay0"

    def __init__(self, folder: RunFolder, namespace: Namespace, delay_s: float) -> None:
        self._namespace = namespace
        self._delay_s = delay_s
        self._log = folder.log(f"delay-line-{namespace.name}")
        self._process: ManagedProcess | None = None

    def start(self) -> None:
        """Start the line. Raises `StartError`."""
        arguments = ["-m", "devcluster.machines.delay_line", self.interface, str(self._delay_s)]
        command = [*self._namespace.entering, sys.executable, *arguments]
        self._process = ManagedProcess("delay-line", command, log_path=self._log, ready=self._is_ready)
        self._process.start()
        self._namespace.run("ip", "link", "set", self.interface, "up")

    def close(self) -> None:
        """Stop the line; the packets in it are lost."""
        if self._process is not None:
            self._process.kill()

    def _is_ready(self) -> bool:
        return "ready" in self._log.read_text().splitlines()


def main() -> None:
    """Delay packets until killed."""
    interface, delay_s = sys.argv[1], float(sys.argv[2])
    line = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(line, _SET_INTERFACE, struct.pack("16sH", interface.encode(), _PACKETS))
    print("ready", flush=True)
    held: deque[tuple[float, bytes]] = deque()
    while True:
        wait_s = max(0.0, held[0][0] - time.monotonic()) if held else None
        if select.select([line], [], [], wait_s)[0]:
            packet = os.read(line, _LARGEST_PACKET)
            if len(held) < _MOST_HELD:
                held.append((time.monotonic() + delay_s, packet))
        while held and held[0][0] <= time.monotonic():
            os.write(line, held.popleft()[1])


if __name__ == "__main__":
    main()
