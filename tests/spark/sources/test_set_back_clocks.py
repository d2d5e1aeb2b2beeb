"""Kafka's logs of a night in which clocks are set back: the times are right, although local time repeats an hour."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import Row, SparkSession

from kontroller.history.audit.audit import audit
from kontroller.history.schemas import EVENTS, KNOWN_SPANS, PROOFS
from kontroller.history.sources import text_logs

SETTINGS = {
    # Settings without code generation. Compiling the plans takes far longer than running them on these few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A file is read in several splits.
    "spark.sql.files.maxPartitionBytes": "700",
}
AUTUMN = datetime(2026, 10, 25, 1, tzinfo=UTC)  # 03:00 in Berlin, which becomes 02:00
SPRING = datetime(2026, 3, 29, 1, tzinfo=UTC)
LORD_HOWE = datetime(2026, 4, 4, 15, tzinfo=UTC)  # 02:00 there, which becomes 01:30
Line = tuple[float, str]
"""Minutes from the moment at which clocks are changed, and the text of the line."""
Hosts = Mapping[str, Sequence[Line]]
"""The lines of a log, by host and file."""

CHATTER = "[Broker id={0}] Add 1 partitions and deleted 0 partitions from metadata cache (state.change.logger)"
BALANCE = "[Controller id=1] Processing automatic preferred replica leader election (kafka.controller.KafkaController)"


def elect(host: int, epoch: int) -> str:
    return (
        f"[Controller id={host}] {host} successfully elected as the controller. Epoch incremented to {epoch} and epoch zk "
        f"version is now {epoch} (kafka.controller.KafkaController)"
    )


def resign(host: int) -> str:
    return f"[Controller id={host}] Resigned (kafka.controller.KafkaController)"


def lose(host: int, epoch: int, version: int) -> str:
    """Broker 2 led it alone."""
    return (
        f"[Controller id={host} epoch={epoch}] Partition orders-0 state changed to (Leader:-1,ISR:2,LeaderRecoveryState:"
        f"RECOVERED,LeaderEpoch:{version},ZkVersion:{version},ControllerEpoch:{epoch}) after removing replica 2 from the "
        "ISR as part of transition to OfflineReplica (state.change.logger)"
    )


def lead(host: int, epoch: int, version: int) -> str:
    return (
        f"[Controller id={host} epoch={epoch}] Changed partition orders-0 from OfflinePartition to OnlinePartition with "
        f"state LeaderAndIsr(leader=2, leaderEpoch={version}, isrWithBrokerEpoch=List(BrokerState(brokerId=2, "
        f"brokerEpoch=-1)), leaderRecoveryState=RECOVERED, partitionEpoch={version}) (state.change.logger)"
    )


def make_host(*states: Line, others: Sequence[Line] = ()) -> Hosts:
    return {
        "broker-1/controller.log": [(-600, elect(1, 5)), *((minutes, BALANCE) for minutes in range(-90, 90, 5))],
        "broker-1/state-change.log": sorted([*states, (600, lead(1, 5, 99)), *others]),
    }


TWO_HOSTS: Hosts = {
    "broker-1/controller.log": [(-600, elect(1, 5)), (-9, resign(1)), (55, elect(1, 7))],
    "broker-1/state-change.log": [(-300, lead(1, 5, 8)), (-10, lose(1, 5, 9)), (56, lead(1, 7, 11))],
    "broker-3/controller.log": [(10, elect(3, 6)), (54, resign(3))],
    "broker-3/state-change.log": [(30, lead(3, 6, 10))],
}
ROTATED: Hosts = {
    "broker-1/controller.log": [(-600, elect(1, 5))],
    "broker-1/state-change.log.1": [(-30, lead(1, 5, 8)), (-15, lose(1, 5, 9))],
    "broker-1/state-change.log": [(25, lead(1, 5, 10)), (50, lose(1, 5, 11)), (70, lead(1, 5, 12))],
}
NOTICED_LATE: Hosts = {
    "broker-1/controller.log": [(-600, elect(1, 5)), (-39, resign(1)), (-38, BALANCE)],
    "broker-1/state-change.log": [(-300, lead(1, 5, 8)), (-50, lose(1, 5, 9))],
    "broker-3/controller.log": [(-40, elect(3, 6))],
    "broker-3/state-change.log": [(-30, lead(3, 6, 10))],
}
CREATED_AGAIN: Hosts = make_host((-50, lead(1, 5, 7)), (-40, lead(1, 5, 0)), (-20, lose(1, 5, 1)))

FAILOVER: Sequence[Line] = ((-50, lead(1, 5, 8)), (-20, lose(1, 5, 9)), (20, lead(1, 5, 10)))
SCENES: dict[str, tuple[str, datetime, Hosts]] = {
    "autumn": ("Europe/Berlin", AUTUMN, make_host(*FAILOVER)),
    "autumn, and brokers say more": (
        "Europe/Berlin", AUTUMN,
        make_host(
            (-50, lead(1, 5, 8)), (50, lose(1, 5, 9)), (55, lead(1, 5, 10)),
            others=[(minutes, CHATTER.format(1)) for minutes in range(-60, 60, 7)],
        ),
    ),
    "autumn, all in the first hour": (
        "Europe/Berlin", AUTUMN, make_host((-59, lead(1, 5, 8)), (-50, lose(1, 5, 9)), (-10, lead(1, 5, 10))),
    ),
    "autumn, two hosts": ("Europe/Berlin", AUTUMN, TWO_HOSTS),
    "autumn, a file that was rotated": ("Europe/Berlin", AUTUMN, ROTATED),
    "autumn, a controller that noticed late": ("Europe/Berlin", AUTUMN, NOTICED_LATE),
    "autumn, a topic that is created again": ("Europe/Berlin", AUTUMN, CREATED_AGAIN),
    "autumn, half an hour": (
        "Australia/Lord_Howe", LORD_HOWE, make_host((-25, lead(1, 5, 8)), (-10, lose(1, 5, 9)), (10, lead(1, 5, 10))),
    ),
    "spring": ("Europe/Berlin", SPRING, make_host(*FAILOVER)),
    "no change": ("UTC", AUTUMN, make_host(*FAILOVER)),
    "no change on that day": ("America/New_York", AUTUMN, make_host(*FAILOVER)),
}  # fmt: skip
"""The zone, when clocks are changed in it (or elsewhere), and the logs."""
OFF_BY = timedelta(milliseconds=6)
"""Each second line of a file is this much earlier than its place, as lines of two threads are."""


def write_logs(folder: Path, zone: str, changed_at: datetime, hosts: Hosts, until: float = 1e9) -> Path:
    """Write the logs of brokers in that time zone, up to `until` minutes after clocks are changed."""
    for name, lines in hosts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        local = ((time_of(changed_at, line).astimezone(ZoneInfo(zone)), line[1]) for line in lines if line[0] <= until)
        path.write_text(
            "".join(f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}] INFO {said}\n" for at, said in local)
        )
    return folder


def time_of(changed_at: datetime, line: Line) -> datetime:
    return changed_at + timedelta(minutes=line[0]) - OFF_BY * (line[0] % 2)


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Row]:
    """The events of all scenes, each a cluster, and of those that end early and are taken in again."""
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    root = tmp_path_factory.mktemp("logs")
    read = [
        text_logs.read(
            text_logs.lines(spark, [str(write_logs(root / name, *scene))]), cluster_id=name, time_zone=scene[0]
        )[0]
        for name, scene in SCENES.items()
    ]
    raw = [row for rows in read for row in rows.collect()]
    events = text_logs.number_records(spark.createDataFrame(raw, EVENTS.schema)).sort(*EVENTS.order).collect()
    for name in SETTINGS:
        spark.conf.unset(name)
    return events


@pytest.mark.parametrize("name", SCENES)
def test_each_state_has_the_time_at_which_it_was_written(name: str, told: Sequence[Row]) -> None:
    _, changed_at, hosts = SCENES[name]
    states = sorted(
        time_of(changed_at, line)
        for lines in hosts.values()
        for line in lines
        if "=List(" in line[1] or "Leader:" in line[1]
    )
    found = [row.event_time.astimezone(UTC) for row in told if row.cluster_id == name and row.kind == "leadership"]
    assert found == states


@pytest.mark.parametrize("name", SCENES)
def test_elections_and_ends_of_controllers_have_their_times(name: str, told: Sequence[Row]) -> None:
    _, changed_at, hosts = SCENES[name]
    expected = sorted(
        time_of(changed_at, line)
        for lines in hosts.values()
        for line in lines
        if "elected" in line[1] or "Resigned" in line[1]
    )
    found = [
        row.event_time.astimezone(UTC) for row in told if row.cluster_id == name and row.kind.startswith("controller")
    ]
    assert sorted(found) == expected


def test_no_clock_makes_a_violation(spark: SparkSession, told: Sequence[Row]) -> None:
    sound = [row for row in told if "created again" not in row.cluster_id]
    nothing = [spark.createDataFrame([], table.schema) for table in (KNOWN_SPANS, PROOFS)]
    found = audit(spark.createDataFrame(sound, EVENTS.schema), *nothing).collect()
    assert [(row.cluster_id, row.invariant, row.detail) for row in found] == []


def test_a_file_that_is_read_again_when_it_has_grown_says_the_same_of_its_lines(
    spark: SparkSession, tmp_path: Path
) -> None:
    scene = SCENES["autumn"]

    def read_until(minutes: float) -> set[tuple[object, ...]]:
        logs = str(write_logs(tmp_path / "logs", *scene, until=minutes))
        told, _ = text_logs.read(text_logs.lines(spark, [logs]), cluster_id="c", time_zone=scene[0])
        return {
            (row.controller_epoch, row.seq, row.kind, row.cause, row.event_time, row.took_us, row.partition_epoch)
            for row in told.collect()
        }

    early, late = read_until(30), read_until(1e9)
    assert "set_back" in {kind for _, _, kind, *_ in early}
    assert early < late
