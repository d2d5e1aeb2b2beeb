"""Machines that reach each other over a router, which loses, holds back or swallows what goes from one to another.

Each machine is a namespace with one interface, whose other end is in the router's. What happens to packets happens in the
router, as on a real way: neither end is told. They are lost by iptables, at random or all, and held back by `delay_line`,
each for the same time. Who enters the router's own network reaches all machines, and nothing of this touches him.
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
"""The routing table of packets that are to be held back."""
_SETTINGS: Final = {"ip_forward": 1, "conf/all/rp_filter": 0, "conf/default/rp_filter": 0}


class Machine(Namespace):
    """One with a single interface. Its address lasts, unless it is given another one."""

    def __init__(self, folder: RunFolder, name: str, number: int) -> None:
        super().__init__(folder, name)
        self.number = number
        self.address = f"{_NETWORK}.{number}"

    def place(self, name: str | None = None) -> Place:
        """Where servers run on it; `name`: what they are registered by, in place of its address."""
        return Place(address=self.address, name=name, entering=self.entering)


class Network(Startable):
    """As many machines as there are `machines`, by their names. `name` tells the networks of a run folder apart; `delay_s`:
    how long `slow` ways hold each packet back."""

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
        """Makes all machines and connects them. Raises `StartError`."""
        self._started.enter_context(self.router)
        for name, value in _SETTINGS.items():
            self.router.run("sh", "-c", f"echo {value} >/proc/sys/net/ipv4/{name}")
        self._started.enter_context(self._delay_line)
        self.router.run("ip", "route", "add", "default", "dev", self._delay_line.interface, "table", _HELD_BACK)
        for machine in self.machines.values():
            self._started.enter_context(machine)
            self._connect(machine)

    def close(self) -> None:
        """Takes all of it away."""
        self._started.close()

    def move(self, machine: Machine) -> None:
        """Gives a machine another address, which nobody had."""
        before, machine.address = machine.address, f"{_NETWORK}.{machine.number + 100}"
        self._address(machine)
        machine.run("ip", "address", "delete", f"{before}/32", "dev", "eth0")
        self.router.run("ip", "route", "delete", f"{before}/32")

    @contextmanager
    def cut(self, source: Machine, *sinks: Machine) -> Iterator[None]:
        """Nothing of what one machine sends reaches others; what these send reaches it."""
        with self._rules(["iptables", "-w"], "FORWARD", _ways(source, sinks), ["-j", "DROP"]):
            yield

    @contextmanager
    def lossy(self, one: Machine, *others: Machine, share: float) -> Iterator[None]:
        """A share of the packets is lost, of those to it and from it."""
        lost = ["-m", "statistic", "--mode", "random", "--probability", str(share), "-j", "DROP"]
        with self._rules(["iptables", "-w"], "FORWARD", [*_ways(one, others), *_ways_back(one, others)], lost):
            yield

    @contextmanager
    def slow(self, one: Machine, *others: Machine) -> Iterator[None]:
        """Each packet is held back, of those to it and from it."""
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
