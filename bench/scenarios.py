"""The scenarios of the benchmark: one function each, in the order in which they run.

Each ends with a check of ZooKeeper and of every broker's state, so that a controller that does nothing cannot win.
"""

from collections.abc import Callable, Mapping
from typing import Final

from bench.evaluation import (
    everybody_knows,
    full_state_is_sent,
    nobody_counts_on,
)
from bench.fleet import Comparison
from bench.setup import dataset
from bench.stage import Settled, Stage, measure_cost, now_us, probe, wait_for_controller, wait_until_idle
from devcluster.running.processes import wait_until

KILLED: Final = 1
"""The broker that dies: it leads a third of all partitions."""
SHUT_DOWN: Final = 2
"""The broker that is shut down: after the other's death it leads a third of all partitions."""


def failover_cold(stage: Stage) -> None:
    """Measure the takeover by a process that just started."""
    hosted = stage.fleet.compare().replicas
    stage.fleet.forget()
    began_us = now_us()
    stage.controller.spawn()
    with measure_cost(stage.controller, from_its_start=True) as cost:
        settled = _settle_full_state(stage, hosted)
    since_us = wait_for_controller(stage, after_us=began_us - 1000)
    stage.add("failover", "cold", began_us=since_us, settled=settled, cost=cost)


def failover_hot(stage: Stage) -> None:
    """Measure the takeover by a hot standby after the controller is killed."""
    standby = stage.another_controller()
    standby.spawn()
    wait_until(standby.is_standing_by, "the second controller stands by")
    wait_until_idle(standby)  # it may still read the state that it would take over
    hosted = stage.fleet.compare().replicas
    stage.fleet.forget()
    before, stage.controller = stage.controller, standby
    began_us = now_us()
    with measure_cost(standby) as cost:
        before.close()
        settled = _settle_full_state(stage, hosted)
    since_us = wait_for_controller(stage, after_us=began_us)
    stage.add("failover", "hot", began_us=since_us, settled=settled, cost=cost)


def failover_again(stage: Stage) -> None:
    """Take the role from a process, and measure its next takeover with warm code."""
    hosted = stage.fleet.compare().replicas
    stage.fleet.forget()
    began_us = now_us()
    with measure_cost(stage.controller) as cost:
        with stage.zookeeper.client() as client:
            client.delete("/controller")
        settled = _settle_full_state(stage, hosted)
    since_us = wait_for_controller(stage, after_us=began_us - 1000)
    stage.add("failover", "again", began_us=since_us, settled=settled, cost=cost)


def broker_death(stage: Stage) -> None:
    """Measure the death of a broker that leads a third of all partitions, and its return."""
    with probe(stage, "broker_death"), measure_cost(stage.controller) as cost:
        began_us = stage.fleet.kill(KILLED)
        stage.live.discard(KILLED)
        settled = stage.settle(
            lambda look: nobody_counts_on(look, KILLED, stage.live),
            lambda found: _is_led_without(found, KILLED, stage.partitions),
        )
    stage.add("broker_death", "", began_us=began_us, settled=settled, cost=cost)
    _return_broker(stage, KILLED, "after death")


def shut_down_broker(stage: Stage) -> None:
    """Measure the controlled shutdown of a broker that leads a third of all partitions, and its return."""
    others = stage.live - {SHUT_DOWN}
    with probe(stage, "controlled_shutdown"), measure_cost(stage.controller) as cost:
        asked = stage.fleet.shut_down(SHUT_DOWN)
        settled = stage.settle(
            lambda look: nobody_counts_on(look, SHUT_DOWN, others),
            lambda found: _is_led_without(found, SHUT_DOWN, stage.partitions),
            since_us=asked.at_us,
            leaving=SHUT_DOWN,
        )
    stage.add("controlled_shutdown", "", began_us=asked.at_us, settled=settled, cost=cost, also_us=asked.answered_us)
    stage.fleet.kill(SHUT_DOWN)
    stage.live.discard(SHUT_DOWN)
    stage.settle(lambda look: True, lambda found: True)
    _return_broker(stage, SHUT_DOWN, "after shutdown")


def creation(stage: Stage) -> None:
    """Measure the creation of topics by a single transaction."""
    first = dataset.topics_of(stage.settings.partitions)
    topics = [dataset.topic_name(first + number) for number in range(dataset.topics_of(stage.settings.changed))]
    znodes = [next(dataset.topic_znodes(topic, dataset.assignment(topic))) for topic in topics]
    stage.partitions += stage.settings.changed
    with probe(stage, "create"), measure_cost(stage.controller) as cost:
        began_us = stage.fleet.write(znodes, at_once=len(znodes))
        settled = stage.settle(
            lambda look: all(look.brokers[one].known.partitions == stage.partitions for one in stage.live),
            lambda found: _is_whole(found, stage.partitions),
        )
    stage.add("create", "", began_us=began_us, settled=settled, cost=cost)


def reassignment(stage: Stage) -> None:
    """Measure a move of partitions to the three other brokers. There is no data, so new replicas catch up at once."""
    before = stage.fleet.compare()
    targets = [
        (
            dataset.topic_name(number // dataset.PARTITIONS_OF_A_TOPIC),
            number % dataset.PARTITIONS_OF_A_TOPIC,
            dataset.replicas_of(number + 3),
        )
        for number in range(stage.settings.changed)
    ]
    expected = dict(before.replicas)
    for number in range(stage.settings.changed):
        for origin, target in zip(dataset.replicas_of(number), dataset.replicas_of(number + 3), strict=True):
            expected[origin] -= 1
            expected[target] += 1
    stage.fleet.catch_up(on=True)
    with probe(stage, "reassign"), measure_cost(stage.controller) as cost:
        began_us = stage.fleet.reassign(targets)
        settled = stage.settle(
            lambda look: everybody_knows(look, stage.live, expected),
            lambda found: _is_whole(found, stage.partitions) and found.replicas == expected,
        )
    stage.fleet.catch_up(on=False)
    stage.add("reassign", "", began_us=began_us, settled=settled, cost=cost)


def deletion(stage: Stage) -> None:
    """Measure the deletion of the created topics, requested by a single transaction."""
    first = dataset.topics_of(stage.settings.partitions)
    topics = dataset.topics_of(stage.settings.changed)
    znodes = [(f"/admin/delete_topics/{dataset.topic_name(first + number)}", None) for number in range(topics)]
    stage.partitions -= stage.settings.changed
    with probe(stage, "delete"), measure_cost(stage.controller) as cost:
        began_us = stage.fleet.write(znodes, at_once=len(znodes))
        gone = stage.fleet.watch_gone("/admin/delete_topics")
        settled = stage.settle(
            lambda look: (
                gone.done() and all(look.brokers[one].known.partitions == stage.partitions for one in stage.live)
            ),
            lambda found: _is_whole(found, stage.partitions) and found.topics == first,
        )
    stage.add("delete", "", began_us=began_us, settled=settled, cost=cost, also_us=gone.result()["at_us"])


SCENARIOS: Final[dict[str, Callable[[Stage], None]]] = {
    "cold": failover_cold,
    "broker_death": broker_death,
    "controlled_shutdown": shut_down_broker,
    "create": creation,
    "delete": deletion,
    "hot": failover_hot,
    "again": failover_again,
    "reassign": reassignment,
}
"""The scenarios in the order in which they run. The first one always runs: without it there is no controller.

Scenarios that take Kafka minutes come last.
"""


def _settle_full_state(stage: Stage, hosted: Mapping[int, int]) -> Settled:
    return stage.settle(
        lambda look: full_state_is_sent(look, stage.live, stage.partitions, hosted),
        lambda found: _is_whole(found, stage.partitions),
    )


def _return_broker(stage: Stage, broker: int, variant: str) -> None:
    """Measure a broker's return: it registers again, its replicas catch up, and it joins all its ISRs."""
    before = stage.fleet.compare()
    stage.fleet.catch_up(on=True)
    with measure_cost(stage.controller) as cost:
        began_us = stage.fleet.return_broker(broker)
        stage.live.add(broker)
        settled = stage.settle(
            lambda look: everybody_knows(look, stage.live, before.replicas),
            lambda found: _is_whole(found, stage.partitions),
        )
    stage.fleet.catch_up(on=False)
    stage.add("broker_return", variant, began_us=began_us, settled=settled, cost=cost)


def _is_whole(found: Comparison, partitions: int) -> bool:
    """Return True if every partition has a leader and all its replicas in sync, and nothing is in progress."""
    return (
        found.partitions == partitions
        and found.stateless == found.under_replicated == found.reassigning == 0
        and not found.leaders.get(-1)
    )


def _is_led_without(found: Comparison, broker: int, partitions: int) -> bool:
    """Return True if every partition has a leader, and that broker is neither a leader nor in an ISR."""
    return (
        found.partitions == partitions
        and found.stateless == 0
        and not found.leaders.get(-1)
        and not found.leaders.get(broker)
        and not found.in_sync.get(broker)
    )
