"""Delegation tokens that are over are deleted, and only those."""

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controller_core.controller.znodes.delegation_tokens import FIRST_LOOK_AFTER_MS
from controller_core.process.settings import InvalidSettings, load_settings
from controller_core.security.delegation_tokens import parse_token_check_interval_ms
from controller_core.security.properties_file import InvalidProperties
from controller_core.zk import paths
from controller_core.zk.session import SetData
from simulation.cluster import Cluster
from simulation.process import ProcessSettings

INTERVAL_MS = 60_000
DAY_MS = 86_400_000


def token(expiry_ms: int, max_ms: int | None = None) -> bytes:
    """Return a token as brokers write it."""
    return json.dumps(
        {
            "version": 1,
            "owner": "User:alice",
            "renewers": [],
            "issueTimestamp": 0,
            "maxTimestamp": max_ms or expiry_ms + DAY_MS,
            "expiryTimestamp": expiry_ms,
            "tokenId": "any",
        }
    ).encode()


@pytest.fixture
def tokens(cluster: Cluster) -> Cluster:
    """A cluster that has tokens."""
    cluster.settings = ProcessSettings(delegation_token_check_interval_ms=INTERVAL_MS)
    for path in ("/delegation_token", paths.DELEGATION_TOKENS, paths.DELEGATION_TOKEN_CHANGES):
        cluster.put(path, b"")
    cluster.start_brokers(1)
    return cluster


def put(cluster: Cluster, token_id: str, data: bytes) -> None:
    cluster.put(f"{paths.DELEGATION_TOKENS}/{token_id}", data)


def list_left(cluster: Cluster) -> list[str]:
    return list(cluster.zk.tree.children(paths.DELEGATION_TOKENS) or ())


def read_notifications(cluster: Cluster) -> list[bytes | None]:
    names = cluster.zk.tree.children(paths.DELEGATION_TOKEN_CHANGES) or ()
    return [cluster.data(f"{paths.DELEGATION_TOKEN_CHANGES}/{name}") for name in names]


async def test_what_is_over_is_deleted_and_brokers_are_notified(tokens: Cluster) -> None:
    now_ms = tokens.clock.now_ms()
    put(tokens, "over", token(now_ms - DAY_MS))
    put(tokens, "renewed-for-too-long", token(now_ms + DAY_MS, max_ms=now_ms - DAY_MS))
    put(tokens, "good", token(now_ms + DAY_MS))
    await tokens.serve()
    await tokens.settle(FIRST_LOOK_AFTER_MS)
    assert list_left(tokens) == ["good"]
    assert sorted(map(str, read_notifications(tokens))) == [str(b"over"), str(b"renewed-for-too-long")]


async def test_it_is_looked_at_in_every_interval(tokens: Cluster) -> None:
    put(tokens, "short", token(tokens.clock.now_ms() + INTERVAL_MS // 2))
    await tokens.serve()
    await tokens.settle(FIRST_LOOK_AFTER_MS)
    assert list_left(tokens) == ["short"]
    await tokens.settle(INTERVAL_MS)
    assert list_left(tokens) == []


async def test_a_clock_that_is_behind_expires_nothing_although_zookeepers_does(
    tokens: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tokens, "over", token(tokens.clock.now_ms() - DAY_MS))
    behind_ms = tokens.clock.now_ms() - 2 * DAY_MS
    monkeypatch.setattr(tokens.clock, "now_ms", lambda: behind_ms)
    await tokens.serve()
    await tokens.settle(FIRST_LOOK_AFTER_MS)
    assert list_left(tokens) == ["over"]


async def test_a_clock_that_jumped_ahead_expires_nothing_that_zookeepers_does_not(
    tokens: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tokens, "good", token(tokens.clock.now_ms() + DAY_MS))
    ahead_ms = tokens.clock.now_ms() + 2 * DAY_MS
    monkeypatch.setattr(tokens.clock, "now_ms", lambda: ahead_ms)
    await tokens.serve()
    await tokens.settle(FIRST_LOOK_AFTER_MS)
    assert list_left(tokens) == ["good"]


async def test_a_token_that_makes_no_sense_stays_and_disturbs_no_other(tokens: Cluster) -> None:
    put(tokens, "bad", b"{")
    put(tokens, "worse", b'{"version":1,"maxTimestamp":"soon","expiryTimestamp":1}')
    put(tokens, "over", token(tokens.clock.now_ms() - DAY_MS))
    with capture_logs() as logs:
        await tokens.serve()
        await tokens.settle(FIRST_LOOK_AFTER_MS)
    assert sum(entry["event"].startswith("unreadable delegation token") for entry in logs) == 2
    assert list_left(tokens) == ["bad", "worse"]
    assert tokens.active.term.state.unusable.standing["delegation_token"] == 2
    tokens.write(SetData(path=f"{paths.DELEGATION_TOKENS}/bad", data=token(1)))
    await tokens.settle(INTERVAL_MS)
    assert list_left(tokens) == ["worse"]


async def test_a_cluster_without_tokens_is_not_looked_at(tokens: Cluster) -> None:
    tokens.settings = ProcessSettings()
    put(tokens, "over", token(1))
    await tokens.serve()
    await tokens.settle(FIRST_LOOK_AFTER_MS)
    assert list_left(tokens) == ["over"]


@pytest.mark.parametrize(
    ("properties", "interval_ms"),
    [
        ({}, None),
        ({"delegation.token.expiry.check.interval.ms": "5"}, None),
        ({"delegation.token.secret.key": "s"}, 3_600_000),
        ({"delegation.token.master.key": "s", "delegation.token.expiry.check.interval.ms": "5"}, 5),
    ],
)
def test_a_cluster_has_tokens_where_it_has_a_key_for_them(properties: dict[str, str], interval_ms: int | None) -> None:
    assert parse_token_check_interval_ms(properties) == interval_ms


def test_what_makes_no_sense_is_refused_and_the_key_is_not_told(tmp_path: Path) -> None:
    wrong = {"delegation.token.secret.key": "hidden", "delegation.token.expiry.check.interval.ms": "never"}
    with pytest.raises(InvalidProperties, match=r"expiry\.check\.interval\.ms") as refused:
        parse_token_check_interval_ms(wrong)
    assert "hidden" not in str(refused.value)
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in wrong.items()))
    given = {"id": 1000, "zookeeper": "zk:2181", "listen": "PLAINTEXT://10.0.0.9:9090", "properties": file}
    with pytest.raises(InvalidSettings, match=r"properties: .*interval\.ms"):
        load_settings(given)
