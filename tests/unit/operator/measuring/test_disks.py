"""A KafkaCluster shows the fullest disk of each broker as far as brokers say it, and is degraded before one is full."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from controller_core.client.log_dirs.log_directories import LogDirectories, LogDirectory, read_log_directories
from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_operator.plans.cluster.planner import show_cluster
from controller_operator.plans.outcome import Context, Plan
from controller_operator.resources import KafkaCluster
from controller_operator.resources.cluster import KafkaClusterStatus
from controller_operator.resources.conditions import ConditionType, Reason
from simulation.fast_loop import run_fast
from tests.unit.operator.clusters import NOW, healthy, raw, status_of, view
from tests.unit.operator.crashes.operated import CLUSTER, run_beside
from tests.unit.operator.crashes.world import installation
from tests.unit.operator.measuring.log_dirs import directory, make_failed, make_response

WELL = view(healthy([1, 2], [2, 1]), brokers=(1, 2))
ONE_AWAY = view(healthy([1, 2], [2, 1]), brokers=(1,))
UNASKED: Any = None


def full(percent: int, path: str = "/data", *gone: str) -> LogDirectories:
    return LogDirectories(fullest=LogDirectory(path=path, total_bytes=1000, used_percent=percent), failed=gone)


def look(
    found: dict[int, LogDirectories] | None,
    status: Any = None,
    cluster: Snapshot = WELL,
    after: timedelta = timedelta(),
    **spec: int,
) -> Plan[KafkaClusterStatus]:
    stored = {**raw("KafkaCluster", {}, status=status or {}), "spec": {"zookeeper": {"connect": "zk:2181"}, **spec}}
    directories = None if found is None else {BrokerId(number): each for number, each in found.items()}
    resource = KafkaCluster.model_validate(stored)
    return show_cluster(resource, cluster, Context(now=NOW + after), directories=directories)


def disks(plan: Plan[KafkaClusterStatus]) -> dict[int, int | None]:
    return {int(row.id): row.disk.used_percent if row.disk else None for row in plan.status.brokers}


def read_degraded(plan: Plan[KafkaClusterStatus]) -> tuple[str, Reason, str]:
    found = plan.status.condition(ConditionType.DEGRADED)
    assert found is not None
    return found.status.value, found.reason, found.message


class TestAnswers:
    def test_the_fullest_directory_is_the_one_that_counts(self) -> None:
        found = read_log_directories(make_response(directory("/a", 1000, 500), directory("/b", 1000, 99)))
        assert found == full(90, "/b")

    def test_a_percent_is_rounded_down_so_that_only_a_full_disk_says_so(self) -> None:
        assert read_log_directories(make_response(directory("/data", 1000, 1))) == full(99)
        assert read_log_directories(make_response(directory("/data", 1000, 0))) == full(100)

    def test_a_directory_that_failed_is_named_and_the_others_still_count(self) -> None:
        assert read_log_directories(make_response(directory("/a", 1000, 500), make_failed("/b"))) == full(
            50, "/a", "/b"
        )

    @pytest.mark.parametrize(("total", "usable"), [(-1, -1), (0, 0), (1000, 1001), (1000, -1)])
    def test_a_broker_that_does_not_say_how_large_a_disk_is_leaves_it_unknown(self, total: int, usable: int) -> None:
        assert read_log_directories(make_response(directory("/data", total, usable))) == LogDirectories()

    def test_who_may_not_know_is_told_nothing(self) -> None:
        assert read_log_directories(make_response()) is None


class TestStatus:
    def test_shows_each_disk_and_is_degraded_from_ninety_percent_on(self) -> None:
        below = look({1: full(40), 2: full(89)})
        assert disks(below) == {1: 40, 2: 89}
        assert (read_degraded(below)[0], below.notices) == ("False", ())
        nearly = look({1: full(40), 2: full(90)}, status_of(below))
        assert read_degraded(nearly) == ("True", Reason.DISK_NEARLY_FULL, "broker 2 has used 90 % of the disk of /data")
        (event,) = nearly.notices
        assert (event.reason, event.is_warning) == ("DiskNearlyFull", True)
        assert event.message == "broker 2 has used 90 % of the disk of /data"
        more = look({1: full(40), 2: full(97)}, status_of(nearly))
        assert (read_degraded(more)[2], more.notices) == ("broker 2 has used 97 % of the disk of /data", ())
        assert read_degraded(look({1: full(40), 2: full(20)}, status_of(more)))[0] == "False"

    def test_is_degraded_from_the_percent_on_that_the_spec_says(self) -> None:
        assert read_degraded(look({1: full(94)}, diskNearlyFullPercent=95))[0] == "False"
        assert read_degraded(look({1: full(95)}, diskNearlyFullPercent=95))[1] is Reason.DISK_NEARLY_FULL

    def test_names_directories_that_failed_before_what_follows_from_them(self) -> None:
        plan = look({1: full(95, "/a", "/b", "/c"), 2: full(10)})
        assert read_degraded(plan) == (
            "True",
            Reason.LOG_DIRECTORY_FAILED,
            "broker 1 cannot use its log directories /b, /c; broker 1 has used 95 % of the disk of /a",
        )
        assert [each.reason for each in plan.notices] == ["DiskNearlyFull", "LogDirectoryFailed"]

    def test_keeps_what_is_known_until_brokers_were_asked_and_drops_what_they_do_not_say(self) -> None:
        known = status_of(look({1: full(40), 2: full(95)}))
        assert disks(look(UNASKED, known)) == {1: 40, 2: 95}
        assert disks(look({1: full(41)}, known)) == {1: 41, 2: None}

    def test_shows_the_disk_of_a_broker_that_is_missing_as_it_was(self) -> None:
        known = status_of(look({1: full(40), 2: full(99)}))
        plan = look({1: full(40)}, known, ONE_AWAY, timedelta(days=1))
        assert disks(plan) == {1: 40, 2: 99}
        assert read_degraded(plan)[1] is Reason.BROKERS_MISSING
        assert "broker 2 had used 99 % of the disk of /data" in read_degraded(plan)[2]

    def test_names_five_brokers_and_counts_the_others(self) -> None:
        many = view(healthy(list(range(1, 13))), brokers=tuple(range(1, 13)))
        message = read_degraded(look({number: full(95) for number in range(1, 13)}, cluster=many))[2]
        assert message.count("has used") == 5
        assert message.endswith("and 7 more brokers")


def test_brokers_are_asked_once_a_minute_and_the_status_is_written_only_if_a_percent_changes() -> None:
    async def scenario() -> None:
        async with installation() as world, run_beside(world.operate()):
            world.disks = {
                1: make_response(directory("/data", 1000, 805)),
                2: make_response(directory("/data", 1000, 40)),
            }

            def read_shown() -> dict[int, int]:
                rows = world.status(CLUSTER).get("brokers", ())
                return {each["id"]: each["disk"]["usedPercent"] for each in rows if "disk" in each}

            await world.wait_until(lambda: read_shown() == {1: 19, 2: 96})
            assert world.find_reason(CLUSTER, "Degraded") == "DiskNearlyFull"
            assert world.is_ready(CLUSTER)
            await asyncio.sleep(1)
            before = len(world.writes)
            world.disks[1] = make_response(directory("/data", 1000, 801))
            for _ in range(300):
                assert world.runtime is not None
                world.runtime._queue.add((CLUSTER,))
                await asyncio.sleep(1)
            assert len(world.writes) == before
            times = [at for at, number in world.disks_asked if number == 1]
            assert 5 <= len(times) <= 6
            assert all(later - earlier >= 60 for earlier, later in pairwise(times))
            world.disks[2] = make_response(directory("/data", 1000, 400))
            await world.wait_until(lambda: read_shown() == {1: 19, 2: 60})
            assert world.find_reason(CLUSTER, "Degraded") == "Healthy"
            assert [each["reason"] for each in world.api.events].count("DiskNearlyFull") == 1

    run_fast(scenario())


def test_a_cluster_whose_brokers_say_nothing_of_disks_is_as_well_as_before() -> None:
    async def scenario() -> None:
        async with installation() as world, run_beside(world.operate()):
            await world.wait_until(lambda: world.disks_asked)
            await asyncio.sleep(90)
            assert world.is_ready(CLUSTER)
            assert world.find_reason(CLUSTER, "Degraded") == "Healthy"
            assert not any("disk" in each for each in world.status(CLUSTER)["brokers"])

    run_fast(scenario())
