"""Our own test machines: the effects of their network on packets, their host names, and their cleanup."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from devcluster.clusters.run_folder import RunFolder
from devcluster.machines.namespaces import why_impossible
from devcluster.machines.network import Machine, Network
from devcluster.running.processes import wait_until

PORT: Final = 7777
A_MOMENT_S, LONG_S = 2.0, 60.0
"""For connections that must fail, and for those that must come about, even on a busy machine."""
DELAY_S: Final = 0.2


@pytest.fixture(scope="module")
def network(servers_folder: RunFolder) -> Iterator[Network]:
    hindrance = why_impossible()
    if hindrance is not None:
        pytest.skip(f"NOT RUN, networks of our own making are not shown here: {hindrance}")
    with Network(servers_folder, "tried", ["one", "two", "three"], delay_s=DELAY_S) as network:
        for machine in network.machines.values():
            answer_on(machine)
        yield network


def answer_on(machine: Machine) -> None:
    """Echo a byte to every client on a machine."""
    with machine.enter():
        listening = socket.create_server((machine.address, PORT))

    def answer(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.sendall(client.recv(1))

    def accept() -> None:
        while True:
            threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True, name=f"answering on {machine.name}").start()


def answers(asking: Machine, asked: Machine, within_s: float = LONG_S) -> bool:
    with asking.enter(), suppress(OSError), socket.create_connection((asked.address, PORT), within_s) as connection:
        connection.sendall(b"x")
        return connection.recv(1) == b"x"
    return False


@pytest.mark.parametrize("source", ["one", "two"])
def test_what_is_cut_one_way_reaches_nobody_that_way_and_others_are_reached(network: Network, source: str) -> None:
    one, two, three = network.machines.values()
    cut, sink = (one, two) if source == "one" else (two, one)
    assert answers(one, two)
    with network.cut(cut, sink):
        assert not answers(one, two, A_MOMENT_S)
        assert answers(one, three)
        assert answers(three, two)
    assert answers(one, two)


def test_what_is_lost_is_lost_to_the_share(network: Network) -> None:
    one, two, three = network.machines.values()
    with network.lossy(one, two, share=1.0):
        assert not answers(one, two, A_MOMENT_S)
        assert answers(one, three)
    with network.lossy(one, two, share=0.0):
        assert answers(one, two)


def test_what_is_slow_comes_later_by_the_delay_of_each_packet(network: Network) -> None:
    one, two, _ = network.machines.values()
    with network.slow(one, two):
        began_s = time.monotonic()
        assert answers(one, two)
        assert time.monotonic() - began_s >= 4 * DELAY_S, "two for the connection, and two for the answer"


def test_whoever_is_in_the_middle_reaches_all_whatever_is_cut(network: Network) -> None:
    one, two, _ = network.machines.values()
    with network.cut(one, two), network.router.enter():
        for machine in (one, two):
            socket.create_connection((machine.address, PORT), LONG_S).close()


def test_names_are_a_machines_own(network: Network) -> None:
    one, two, _ = network.machines.values()

    def resolve_name(machine: Machine) -> str:
        asked = [*machine.entering, "getent", "hosts", "somebody.test"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout

    one.know({"somebody.test": two.address})
    assert two.address in resolve_name(one)
    assert resolve_name(two) == ""
    one.know({})
    assert resolve_name(one) == ""


def test_a_machine_that_moves_is_reached_at_its_new_address_alone(network: Network) -> None:
    _, two, three = network.machines.values()
    before = three.address
    network.move(three)
    answer_on(three)
    assert answers(two, three)
    with two.enter(), pytest.raises(OSError, match=r"unreachable|timed out"):
        socket.create_connection((before, PORT), A_MOMENT_S)


def test_nothing_is_left_of_a_network_whose_maker_was_killed(network: Network, tmp_path: Path) -> None:
    made = (
        "from pathlib import Path\n"
        "from time import sleep\n"
        "from devcluster.clusters.run_folder import RunFolder\n"
        "from devcluster.machines.network import Network\n"
        f"network = Network(RunFolder(Path({str(tmp_path)!r})), 'killed', ['one'])\n"
        "network.start()\n"
        "print(network.router.pid, network['one'].pid, flush=True)\n"
        "sleep(60)\n"
    )
    maker = subprocess.Popen([sys.executable, "-c", made], stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    pids = maker.stdout.readline().split()
    assert len(pids) == 2, "a network beside that of the other tests"
    maker.send_signal(signal.SIGKILL)
    maker.communicate()
    wait_until(lambda: not any(Path("/proc", pid).exists() for pid in pids), "all of it has ended")
