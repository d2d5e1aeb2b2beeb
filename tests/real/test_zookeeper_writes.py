"""The benchmark of writes, with few states: every way runs on a real ZooKeeper, and its result is checked."""

import pytest

from bench.report.result import Result
from bench.zookeeper_writes import SESSIONS, WAYS, measure

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_every_way_is_measured_on_a_zookeeper_that_waits_for_the_disk_and_on_one_that_does_not() -> None:
    result = Result.model_validate(measure(partitions=100, runs=1))
    measured = {(row.op, row.client, row.way, row.batch, row.window, row.syncs, row.sessions) for row in result.writes}
    assert measured == {
        (way.op, way.client, way.way, way.batch, way.window, syncs, sessions)
        for way in WAYS
        for syncs in (True, False)
        for sessions in SESSIONS
        if (syncs or (way.op == "write" and sessions == 1)) and (way.op == "write" or sessions in (1, SESSIONS[-1]))
    }
    assert len(measured) == len(result.writes)
    assert all(row.seconds > 0 for row in result.writes)
