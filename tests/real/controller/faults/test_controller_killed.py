"""The controller is killed at every write of a reassignment, and another one completes it from there."""

import pytest

from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import serve_topic, wait_until_moved
from tests.real.controller.clusters import OurCluster

TOPIC = "moving"
HERE, THERE = [1, 2, 3], [4, 5, 6]
FEWEST_WRITES = 7
"""The role, AR = OAR + RAR, the announcement, the ISR's growth, the leader, the ISR's shrinking, AR = RAR, the request.
"""


@pytest.mark.timeout(540)
def test_a_reassignment_completes_wherever_the_controller_is_killed(our_cluster: OurCluster) -> None:
    """A failure point is before and after each ZooKeeper write: SIGKILL, restart, and no acknowledged message is lost."""
    znodes, controller = our_cluster.znodes, our_cluster.controller
    serve_topic(znodes, TOPIC, [HERE], {"min.insync.replicas": "2"})
    with nothing_lost(our_cluster.kafka.bootstrap_servers, TOPIC):
        killed_at: list[tuple[int, bool]] = []
        source, target = HERE, THERE
        write, applied = 1, False
        while True:
            controller.kill(ends_session=False)  # no broker may take the role
            znodes.reassign({(TOPIC, 0): target})
            controller.start_to_die(write, applied=applied)
            wait_until(
                lambda: not controller.process.is_running or not znodes.has_reassignments(),
                f"the controller dies at write {write}, or has done everything without it",
            )
            survived = controller.process.is_running
            if not survived:
                killed_at.append((write, applied))
            controller.restart_whole()
            wait_until_moved(our_cluster.znodes, TOPIC, target)
            assert znodes.leader(TOPIC, 0) in target
            assert znodes.isr(TOPIC, 0) == sorted(target)
            source, target = target, source
            if survived and write > FEWEST_WRITES:
                break
            # If the controller survives, a broker's own controller completed the move first: repeat the attempt.
            if not survived:
                write, applied = (write, True) if not applied else (write + 1, False)
    assert len(killed_at) >= 2 * FEWEST_WRITES, f"only killed at {killed_at}"
    our_cluster.wait_until_no_stray_replicas(TOPIC, 0)
