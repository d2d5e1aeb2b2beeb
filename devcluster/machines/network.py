"""Machines that reach each other over a router, which loses, delays or drops packets between them.

Each machine is a namespace with one interface, whose other end is in the router's namespace. Packets are changed in the
router, as on a real network, so neither end is notified. iptables drops them, at random or all of them, and
`delay_line` delays each by the same time. A process in the router's own namespace reaches all machines undisturbed.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from devcluster.clusters.run_folder import RunFolder
from devcluster.machines.delay_line import DelayLine
from devcluster.machines.namespaces import Namespace
from devcluster.running.places import Place
from devcluster.running.servers import Startable

_NETWORK: Final = "10.91.0"
_ROUTER: Final = f"{_NETWORK}.254"
_HELD_BACK: Final = "100"
"""The routing table of packets to delay."""
_SETTINGS: Final = {"ip_forward": 1, "conf/all/rp_filter": 0, "conf/default/rp_filter": 0}


class Machine(Namespace):
    """A machine with a single interface. Its address stays until `move` changes it."""

    def __init__(self, folder: RunFolder, name: str, number: int) -> None:
        super().__init__(folder, name)
        self.number = number
        self.address = f"{_NETWORK}.{number}"

    def place(self, name: str | None = None) -> Place:
        """Return the place of servers on it; `name`: the host name with which they register, instead of the address."""
        return Place(address=self.address, name=name, entering=self.entering)


class Network(Startable):
    """A network of the named machines. `name` must be unique in a run folder; `delay_s`: the delay of each packet on
    `slow` ways.
    """

    def __init__(self, folder: RunFolder, name: str, machines: Sequence[str], *, delay_s: float = 0.2) -> None:
        self.router = Namespace(folder, f"{name}-router")
        self.machines = {
            machine: Machine(folder, f"{name}-{machine}", number) for number, machine in enumerate(machines, start=1)
        }
        self._delay_line = DelayLine(folder, self.router, delay_s)
        self._started = ExitStack()

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def start(self) -> None:
        """Make all machines and connect them. Raises `StartError`."""
        self._started.enter_context(self.router)
        for name, value in _SETTINGS.items():
            self.router.run("sh", "-c", f"echo {value} >/proc/sys/net/ipv4/{name}")
        self._started.enter_context(self._delay_line)
        self.router.run("ip", "route", "add", "default", "dev", self._delay_line.interface, "table", _HELD_BACK)
        for machine in self.machines.values():
            self._started.enter_context(machine)
            self._connect(machine)

    def close(self) -> None:
        """Remove the network and its machines."""
        self._started.close()

    def move(self, machine: Machine) -> None:
        """Give a machine another, unused address."""
        before, machine.address = machine.address, f"{_NETWORK}.{machine.number + 100}"
        self._address(machine)
        machine.run("ip", "address", "delete", f"{before}/32", "dev", "eth0")
        self.router.run("ip", "route", "delete", f"{before}/32")

    @contextmanager
    def cut(self, source: Machine, *sinks: Machine) -> Iterator[None]:
        """Drop all packets from one machine to others; packets in the other direction pass."""
        with self._rules(["iptables", "-w"], "FORWARD", _ways(source, sinks), ["-j", "DROP"]):
            yield

    @contextmanager
    def lossy(self, one: Machine, *others: Machine, share: float) -> Iterator[None]:
        """Drop a share of the packets between one machine and others, in both directions."""
        lost = ["-m", "statistic", "--mode", "random", "--probability", str(share), "-j", "DROP"]
        with self._rules(["iptables", "-w"], "FORWARD", [*_ways(one, others), *_ways_back(one, others)], lost):
            yield

    @contextmanager
    def slow(self, one: Machine, *others: Machine) -> Iterator[None]:
        """Delay each packet between one machine and others, in both directions."""
        with ExitStack() as undo:
            for source, sink in [*_ways(one, others), *_ways_back(one, others)]:
                rule = ["from", source, "to", sink, "iif", _interface(source), "lookup", _HELD_BACK]
                self.router.run("ip", "rule", "add", *rule)
                undo.callback(self.router.run, "ip", "rule", "delete", *rule)
            yield

    @contextmanager
    def _rules(
        self, command: list[str], chain: str, ways: Sequence[tuple[str, str]], fate: Sequence[str]
    ) -> Iterator[None]:
        with ExitStack() as undo:
            for source, sink in ways:
                rule = [chain, "-s", source, "-d", sink, *fate]
                self.router.run(*command, "-A", *rule)
                undo.callback(self.router.run, *command, "-D", *rule)
            yield

    def _connect(self, machine: Machine) -> None:
        interface = _interface(machine.address)
        self.router.run("ip", "link", "add", interface, "type", "veth", "peer", "eth0", "netns", str(machine.pid))
        self.router.run("ip", "address", "add", f"{_ROUTER}/32", "dev", interface)
        self.router.run("ip", "link", "set", interface, "up")
        machine.run("ip", "link", "set", "eth0", "up")
        self._address(machine)
        machine.run("ip", "route", "add", _ROUTER, "dev", "eth0")
        machine.run("ip", "route", "add", "default", "via", _ROUTER)

    def _address(self, machine: Machine) -> None:
        machine.run("ip", "address", "add", f"{machine.address}/32", "dev", "eth0")
        self.router.run("ip", "route", "add", f"{machine.address}/32", "dev", f"to-{machine.number}")


def _interface(address: str) -> str:
    return f"to-{address.rpartition('.')[2]}"


def _ways(source: Machine, sinks: Sequence[Machine]) -> list[tuple[str, str]]:
    return [(source.address, sink.address) for sink in sinks]


def _ways_back(one: Machine, others: Sequence[Machine]) -> list[tuple[str, str]]:
    return [(other.address, one.address) for other in others]
