"""The quota of a user or client, as ZooKeeper has it, and quotas that make no sense."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller_core.admin.quotas import zk_quotas
from controller_core.admin.quotas.zk_quotas import RATE, Quota, ZkQuotas
from controller_core.model.quotas.entities import Entity, list_candidates
from controller_core.model.quotas.token_bucket import MOST_PER_S
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.zk import paths
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.admin.quotas.written_quotas import put, set_rate

WINDOWS_S = 11
UNUSABLE = [
    json.dumps({"config": {RATE: rate}}).encode()
    for rate in ("many", "", "NaN", "1_0", "\u0661", "0x1p3", "1 2", "9" * 500_000, "9" * 900 + "x")
] + [b"no json", b'{"config":{"%s":5}}' % RATE.encode(), b'{"config":[]}', b"[]", b"\xff" * 100_000]


@pytest.fixture
def zookeeper() -> SimulatedZooKeeper:
    return SimulatedZooKeeper()


@pytest.fixture
def quotas(zookeeper: SimulatedZooKeeper) -> ZkQuotas:
    return ZkQuotas(zookeeper.session(), windows_s=lambda: WINDOWS_S)


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with capture_logs() as lines:
        yield lines


def rate_of(quota: Quota | None) -> float | None:
    return None if quota is None else quota.limit.rate_per_s


async def test_who_has_none_has_none(quotas: ZkQuotas) -> None:
    assert await quotas.find_quota("alice", "app") is None


async def test_the_first_in_kafkas_order_counts_with_its_burst_and_who_shares_it(
    quotas: ZkQuotas, zookeeper: SimulatedZooKeeper
) -> None:
    for number, (entity, sharing) in reversed([*enumerate(list_candidates("alice", "app"))]):
        set_rate(zookeeper, entity, number + 0.5)
        quota = await quotas.find_quota("alice", "app")
        assert quota is not None
        assert (quota.limit.rate_per_s, quota.limit.burst) == (number + 0.5, (number + 0.5) * WINDOWS_S)
        assert (quota.sharing, quota.path) == (sharing, paths.quota(*entity))


async def test_names_are_found_as_kafka_encodes_them(quotas: ZkQuotas, zookeeper: SimulatedZooKeeper) -> None:
    put(zookeeper, "/config/users/CN%3DAl%2Fice%2A/clients/my%20app%7E", b'{"config":{"controller_mutation_rate":"2"}}')
    assert rate_of(await quotas.find_quota("CN=Al/ice*", "my app~")) == 2
    assert await quotas.find_quota("CN%3DAl%2Fice%2A", "my%20app%7E") is None


async def test_nobody_can_call_himself_everybody(quotas: ZkQuotas, zookeeper: SimulatedZooKeeper) -> None:
    set_rate(zookeeper, Entity(None, "<default>"), 2)
    quota = await quotas.find_quota("alice", "<default>")
    assert quota is not None
    assert quota.sharing == Entity(None, "%3Cdefault%3E")


@pytest.mark.parametrize("name", ["", ".", "..", "../users", "a/b", "x" * 30_000, "ü", "\n", "\0"])
async def test_whatever_somebody_calls_himself_what_is_set_for_everybody_counts(
    quotas: ZkQuotas, zookeeper: SimulatedZooKeeper, name: str
) -> None:
    set_rate(zookeeper, Entity("<default>", None), 3)
    set_rate(zookeeper, Entity(None, "<default>"), 4)
    assert rate_of(await quotas.find_quota("alice", name)) == 3
    assert rate_of(await quotas.find_quota(name, "app")) == (3 if name else 4)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("5", 5), ("5.0", 5), ("1.0E7", 1e7), (" 5 ", 5), ("+.5", 0.5), ("5.", 5), ("5d", 5), ("0", 0), ("-0.0", 0),
        ("4.9E-324", 5e-324), ("1e-999", 0), ("1e999", MOST_PER_S), ("Infinity", MOST_PER_S), ("1E300", MOST_PER_S),
    ],
)  # fmt: skip
async def test_a_rate_is_read_as_java_reads_one_and_what_is_huge_is_no_limit(
    quotas: ZkQuotas, zookeeper: SimulatedZooKeeper, text: str, rate: float
) -> None:
    set_rate(zookeeper, Entity("alice", None), text)
    assert rate_of(await quotas.find_quota("alice", "app")) == rate


@pytest.mark.parametrize("data", UNUSABLE, ids=lambda data: data[:40].decode(errors="replace"))
async def test_one_that_makes_no_sense_counts_as_none_and_is_said_once(
    quotas: ZkQuotas, zookeeper: SimulatedZooKeeper, logged: list[Any], data: bytes
) -> None:
    set_rate(zookeeper, Entity("<default>", None), 3)
    bad = paths.quota("alice", "app")
    put(zookeeper, bad, data)
    assert [rate_of(await quotas.find_quota("alice", "app")) for _ in range(3)] == [3, 3, 3], "the next one counts"
    assert rate_of(await quotas.find_quota("bob", "app")) == 3, "others are left alone"
    (line,) = logged
    assert (line["event"], line["path"]) == ("unusable mutation quota: it is ignored", bad)
    assert len(line["error"]) < 500
    assert quotas.unusable.standing.total() == 1
    put(zookeeper, bad, b'{"config":{"controller_mutation_rate":"7"}}')
    assert rate_of(await quotas.find_quota("alice", "app")) == 7
    assert quotas.unusable.standing.total() == 0


@pytest.mark.parametrize("rate", ["-1", "-Infinity", "-1e-9"])
async def test_one_below_0_counts_as_0_and_is_said_once(
    quotas: ZkQuotas, zookeeper: SimulatedZooKeeper, logged: list[Any], rate: str
) -> None:
    set_rate(zookeeper, Entity("<default>", None), 3)
    set_rate(zookeeper, Entity("alice", None), rate)
    assert [rate_of(await quotas.find_quota("alice", "app")) for _ in range(3)] == [0, 0, 0]
    assert rate_of(await quotas.find_quota("bob", "app")) == 3
    assert [line["event"] for line in logged] == ["mutation quota below 0: it counts as 0"]
    assert quotas.unusable.standing.total() == 1


async def test_other_settings_of_an_entity_are_no_quota_of_mutations(
    quotas: ZkQuotas, zookeeper: SimulatedZooKeeper, logged: list[Any]
) -> None:
    put(zookeeper, paths.quota("alice", None), b'{"config":{"producer_byte_rate":"1","SCRAM-SHA-256":"salt"}}')
    assert await quotas.find_quota("alice", "app") is None
    assert logged == []


async def test_nothing_of_a_credential_beside_it_is_shown(
    quotas: ZkQuotas, zookeeper: SimulatedZooKeeper, logged: list[Any]
) -> None:
    for data in (b'{"config":{"SCRAM-SHA-256":["a secret"]}}', b"a secret", b'{"config":"a secret"}'):
        put(zookeeper, paths.quota("alice", None), data)
        assert await quotas.find_quota("alice", "app") is None
    assert logged
    assert "secret" not in str(logged)


async def test_without_zookeeper_nobody_is_let_through(
    zookeeper: SimulatedZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zk_quotas, "TIMEOUT_S", 0.05)
    session = zookeeper.session()
    zookeeper.disconnect(session)
    quotas = ZkQuotas(session, windows_s=lambda: WINDOWS_S)
    asked = [quotas.find_quota("alice", "app") for _ in range(3 * zk_quotas.AT_ONCE)]
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(answer, NoAnswerNow)
