"""Alerts as an Alertmanager takes them; and that one that is away, slow or refusing neither loses nor stops anything."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from kontroller.history.alarms.records import Alarm
from kontroller.history.watching import alertmanager
from kontroller.history.watching.alertmanager import Alertmanager, Unreachable
from kontroller.history.watching.board import Board
from tests.unit.watching.alertmanagers import StrictAlertmanager
from tests.unit.watching.lines import START_US, Clock

NOW_S = START_US / 1e6


def alarm(
    topic: str | None = "orders", *, problem: str = "leaderless", state: str = "raised", began_us: int = START_US
) -> Alarm:
    partition = None if topic is None else 3
    return Alarm(topic, partition, problem, state, began_us, began_us, "broker_failed", (1, 2))


@pytest.fixture
async def server() -> AsyncIterator[StrictAlertmanager]:
    server = StrictAlertmanager()
    await server.start()
    yield server
    await server.stop()
    assert server.faults == []


class Told:
    """A board with a receiver."""

    def __init__(self, session: aiohttp.ClientSession, url: str, *, resend_s: float = 60.0) -> None:
        self.clock, self.board = Clock(), Board()
        self.receiver = Alertmanager(url, session, [], wall=self.clock, resend_s=resend_s)
        self.board.tell(self.receiver.receive)

    def post(self, *alarms: Alarm) -> None:
        for each in alarms:
            self.board.post("c1", each, self.clock.now_s)


@pytest.fixture
async def told(server: StrictAlertmanager) -> AsyncIterator[Told]:
    async with aiohttp.ClientSession() as session:
        yield Told(session, server.url)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what it waits for happens on the other side of a socket
            await asyncio.sleep(0.01)


@asynccontextmanager
async def run(receiver: Alertmanager) -> AsyncIterator[None]:
    task = asyncio.create_task(receiver.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_an_alert_says_which_partition_of_which_cluster_and_since_when(
    server: StrictAlertmanager, told: Told
) -> None:
    told.clock.now_s += 35
    told.post(alarm())
    await told.receiver.send()
    ((alert,),) = server.requests
    assert alert["labels"] == {
        "alertname": "KafkaPartitionLeaderless",
        "cluster": "c1",
        "topic": "orders",
        "partition": "3",
        "problem": "leaderless",
        "severity": "critical",
    }
    assert alert["startsAt"] == "2023-11-14T22:13:20.000000Z"
    assert alert["annotations"]["cause"] == "broker_failed"
    assert "orders-3" in alert["annotations"]["summary"]


async def test_one_about_a_whole_cluster_has_no_topic_and_no_partition(server: StrictAlertmanager, told: Told) -> None:
    told.post(alarm(None, problem="silent"))
    told.board.post("", alarm("t", problem="under_min_isr"), NOW_S)
    await told.receiver.send()
    ((silent, unnamed),) = server.requests
    assert silent["labels"].keys() == {"alertname", "cluster", "problem", "severity"}
    assert "cluster" not in unnamed["labels"]


async def test_it_fires_until_it_is_over_and_is_told_of_once_more_then(server: StrictAlertmanager, told: Told) -> None:
    told.post(alarm())
    await told.receiver.send()
    assert len(server.list_firing(NOW_S)) == 1
    told.clock.now_s += 10
    told.post(alarm(state="cleared"))
    await told.receiver.send()
    assert server.list_firing(NOW_S + 11) == []
    await told.receiver.send()
    assert len(server.requests) == 2
    assert told.receiver.pending == 0


async def test_what_stands_is_sent_again_before_it_would_end_by_itself(server: StrictAlertmanager) -> None:
    async with aiohttp.ClientSession() as session:
        told = Told(session, server.url, resend_s=0.05)
        told.post(alarm())
        async with run(told.receiver):
            for _ in range(20):
                told.clock.now_s += 0.05
                count = len(server.requests)
                await wait_until(lambda count=count: len(server.requests) > count)  # type: ignore[misc]
                assert len(server.list_firing(told.clock.now_s)) == 1
        assert server.list_firing(told.clock.now_s + 0.3) == []


@pytest.mark.parametrize(
    "began_us", [START_US + 36_000_000_000, 0, -START_US, 10**24], ids=["ahead", "1970", "before", "absurd"]
)
async def test_a_bad_clock_makes_no_alert_that_is_refused_or_lies_in_the_future(
    server: StrictAlertmanager, told: Told, began_us: int
) -> None:
    told.post(alarm(began_us=began_us))
    await told.receiver.send()
    assert server.requests[0][0]["startsAt"] <= "2023-11-14T22:13:20.000000Z"
    told.clock.now_s -= 3600  # the clock of this machine is set back
    told.post(alarm(state="cleared", began_us=began_us))
    await told.receiver.send()
    assert server.list_firing(NOW_S + 1) == []


async def test_while_it_is_away_alarms_wait_and_it_learns_of_all_as_they_are_by_then(
    monkeypatch: pytest.MonkeyPatch, server: StrictAlertmanager, told: Told
) -> None:
    monkeypatch.setattr(alertmanager, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(alertmanager, "_LONGEST_PAUSE_S", 0.05)
    told.post(alarm("known"))
    await told.receiver.send()
    await server.stop()
    async with run(told.receiver):
        told.post(alarm("known", state="cleared"), alarm("new"), alarm("short"), alarm("short", state="cleared"))
        await wait_until(lambda: told.receiver.failures >= 3)
        assert told.receiver.pending == 3
        told.clock.now_s += 1
        await server.start()
        await wait_until(lambda: told.receiver.pending == 0)
    assert [labels["topic"] for labels in server.list_firing(told.clock.now_s)] == ["new"]


@pytest.mark.parametrize("status", [404, 401, 429, 500, 503, 302])
async def test_an_answer_that_is_no_yes_keeps_what_was_to_be_sent(
    server: StrictAlertmanager, told: Told, status: int
) -> None:
    told.post(alarm())
    server.answers = [status]
    with pytest.raises(Unreachable, match=str(status)):
        await told.receiver.send()
    assert told.receiver.pending == 1
    await told.receiver.send()
    assert (told.receiver.pending, len(server.requests)) == (0, 1)


async def test_what_is_refused_for_good_is_counted_and_does_not_stop_the_rest(
    server: StrictAlertmanager, told: Told
) -> None:
    server.answers = [400]
    told.post(alarm("a"))
    await told.receiver.send()
    assert (told.receiver.dropped, told.receiver.sent) == (1, 0)
    told.post(alarm("b"))
    await told.receiver.send()
    assert told.receiver.sent == 1
    assert (told.receiver.dropped, [labels["topic"] for labels in server.list_firing(NOW_S)]) == (1, ["b"])


async def test_thousands_go_in_batches(server: StrictAlertmanager, told: Told) -> None:
    told.post(*(alarm(f"topic-{number}") for number in range(1_234)))
    await told.receiver.send()
    assert [len(request) for request in server.requests] == [500, 500, 234]
    assert len(server.alerts) == 1_234


async def test_an_alertmanager_that_never_answers_is_given_up_in_time(
    monkeypatch: pytest.MonkeyPatch, server: StrictAlertmanager
) -> None:
    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    monkeypatch.setattr(alertmanager, "_TIMEOUT", aiohttp.ClientTimeout(total=0.1))
    hanging = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        stuck = Told(session, f"http://127.0.0.1:{hanging.sockets[0].getsockname()[1]}")
        stuck.post(alarm())
        with pytest.raises(Unreachable, match="Timeout"):
            await stuck.receiver.send()
        other = Told(session, server.url)
        other.post(alarm())
        await other.receiver.send()
    hanging.close()


async def test_it_may_be_behind_a_path_and_a_password_which_nobody_is_told() -> None:
    server = StrictAlertmanager("/am")
    await server.start()
    async with aiohttp.ClientSession() as session:
        address = server.url.replace("://", "://me:secret@")
        told = Told(session, f"{address}/")
        told.post(alarm())
        await told.receiver.send()
        assert "secret" not in told.receiver.name
    await server.stop()
    assert len(server.requests) == 1
