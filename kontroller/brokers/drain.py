"""Drains a broker before it is stopped, over Kafka's protocol alone, with Kafka's own controller or with Kontroller.

1. Wait until every partition has enough in-sync replicas without the broker. Nothing is changed before that. 2.
ControlledShutdown: the controller moves the broker's leaderships, until no other replica could take over more. 3. Check
again, because other brokers may have been stopped at the same moment.

Without ZooKeeper brokers do step 2 themselves when they stop. There the brokers take turns, and check at their turn.

A wait ends early if no replica came into sync and no broker came back for `patience_s`. From step 2 on the controller
treats the broker as shutting down, until it registers again or another controller takes over."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Set
from typing import Final, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.configs import ask_min_insync_replicas
from controller_core.client.errors import AdminError, AnswerUnreadable, NotAdmittedError, Refused
from controller_core.client.quorum import ask_time_ms, ask_votes, has_quorum
from controller_core.client.snapshot import read_snapshot
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.draining.broker_stop import (
    Obstacle,
    count_absent,
    count_missing_replicas,
    explain,
    explain_enough,
    find_obstacles,
    find_still_led,
    find_turn,
    find_wait_for_turn_s,
)
from controller_core.model.draining.quorum_votes import Vote, find_missing_votes
from controller_core.model.ids import BrokerId, TopicName
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count, list_some
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse
from controller_core.wire.requests.metadata import ALL_TOPICS

PAUSE_S: Final = 1.0
_PAUSES_OF_A_TURN: Final = 5
"""Without ZooKeeper: longer than a broker needs from the end of its drain until it has left the ISRs."""
_SHARE_OF_A_ROUND: Final = 1 / 3
"""The part of the drain's time in which every broker has a turn. The rest is for replicas that come back."""

_FORBIDDEN: Final = (ErrorCode.cluster_authorization_failed, ErrorCode.topic_authorization_failed)

_NO_ANSWER: Final = "the controller has not answered yet"

Answer = TypeVar("Answer")


class NotDrained(Exception):
    """The broker is not ready to be stopped. The message is one line with the reason."""


class NotRegistered(Exception):
    """The broker is not a member of the cluster, so there is nothing to drain."""


class Drain:
    """The drain of one broker. `say` gets a line whenever there is something new."""

    def __init__(
        self,
        client: ControllerClient,
        broker: BrokerId,
        *,
        patience_s: float,
        say: Callable[[str], None],
        pause_s: float = PAUSE_S,
    ) -> None:
        self._client = client
        self._pause_s = pause_s
        self._broker = broker
        self._request = ControlledShutdownRequest(broker_id=broker)
        """Clients do not know the broker's epoch. The default, -1, disables that check in both controllers."""
        self._patience_s = patience_s
        self._say = say
        self._trouble = _NO_ANSWER
        self._said = ""
        self._has_asked = False
        """True if the controller may have begun to take the broker out of service."""

    async def run(self, timeout_s: float) -> None:
        """Return when the broker may be stopped. Raises `NotDrained` and `NotRegistered`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._run(timeout_s)
        except TimeoutError as error:
            raise self._give_up(f"gave up after {timeout_s:g} s") from error

    async def _run(self, timeout_s: float) -> None:
        if await self._ask(lambda: has_quorum(self._client)):
            await self._wait_for_turn(timeout_s * _SHARE_OF_A_ROUND)
            # A broker without ZooKeeper hands over its leaderships itself when it stops (KIP-631).
            self._report("it hands over its leaderships when it is stopped, as brokers without ZooKeeper do")
            return
        snapshot = await self._wait_for_replicas()
        # Brokers that are stopped together take turns by id, and check again at their turn. Otherwise each would count
        # on the others' replicas.
        turn = find_turn(snapshot, self._broker)
        if turn:
            await asyncio.sleep(turn * self._pause_s)
            snapshot = await self._wait_for_replicas()
        await self._hand_over()
        while led := find_still_led(await self._wait_for_replicas(), self._broker):
            self._report(
                f"{format_count(len(led), 'partition')} still led by it: {list_some([place.partition for place in led])}"
            )
            await asyncio.sleep(self._pause_s)
            await self._hand_over()

    # Steps 1 and 3

    async def _wait_for_replicas(self) -> Snapshot:
        """Wait until every partition has enough in-sync replicas without the broker. This wait comes before
        ControlledShutdown, because that already removes the broker from the ISRs: a partition without a spare replica
        would refuse producers with acks=all.

        Return the cluster as seen then, without the topics that were just being deleted."""
        patience = _Patience(self._patience_s)
        minimum: dict[TopicName, int] = {}
        while True:
            snapshot, waiting = await self._find_obstacles(minimum)
            if not waiting:
                self._report(explain_enough(snapshot, self._broker, minimum), trouble=_NO_ANSWER)
                return snapshot
            self._report(explain(waiting, snapshot.brokers))
            if patience.is_over((count_missing_replicas(waiting), count_absent(waiting, snapshot.brokers))):
                raise self._give_up(f"gave up when nothing came back for {self._patience_s:g} s")
            await asyncio.sleep(self._pause_s)

    async def _find_obstacles(self, minimum: dict[TopicName, int]) -> tuple[Snapshot, tuple[Obstacle, ...]]:
        """Return the cluster, and the partitions that wait. `minimum` keeps the min.insync.replicas of topics."""
        snapshot = await self._read_snapshot()
        minimum |= await self._ask_minimum(snapshot.list_topics_on(self._broker) - minimum.keys())
        snapshot = snapshot.select_topics(minimum.keys())
        return snapshot, find_obstacles(snapshot, self._broker, minimum)

    async def _read_snapshot(self) -> Snapshot:
        snapshot = read_snapshot(await self._ask(lambda: self._client.ask(ALL_TOPICS, MetadataResponse)))
        if self._broker not in snapshot.brokers and not self._has_asked and not await self._is_shutting_down():
            raise NotRegistered(
                f"broker {self._broker} is not registered: alive are {list_some(sorted(snapshot.brokers)) or 'none'}"
            )
        return snapshot

    async def _is_shutting_down(self) -> bool:
        """Ask about a broker that is not listed as alive. Kontroller does not list one that has handed over everything,
        so this may be the second drain of the same broker."""
        if await self._ask(lambda: has_quorum(self._client)):
            return False
        response = await self._ask(lambda: self._client.ask(self._request, ControlledShutdownResponse))
        self._has_asked = response.error_code is ErrorCode.none
        return self._has_asked

    async def _ask_minimum(self, topics: Set[TopicName]) -> dict[TopicName, int]:
        return await self._ask(lambda: ask_min_insync_replicas(self._client, topics))

    # Instead of step 2, without ZooKeeper

    async def _wait_for_turn(self, longest_round_s: float) -> None:
        """Return at a turn of the broker at which nothing has to be waited for.

        A broker that waits at its turn takes another turn, because by then it may be the turn of the next broker."""
        while True:
            await self._wait_for_replicas()
            snapshot = await self._read_snapshot()
            turn_s = _PAUSES_OF_A_TURN * self._pause_s
            wait_s = find_wait_for_turn_s(
                snapshot, self._broker, await self._find_time_s(), turn_s=turn_s, longest_round_s=longest_round_s
            )
            if wait_s >= PAUSE_S:
                self._report(f"its turn among the brokers is in {wait_s:.0f} s")
            await asyncio.sleep(wait_s)
            _, waiting = await self._find_obstacles({})
            if not waiting and not await self._wait_for_votes():
                return

    async def _find_time_s(self) -> float:
        """Return the time by the clock of the controllers' leader, which all brokers share, or else by the own clock."""
        try:
            return await ask_time_ms(self._client) / 1000
        except AdminError:
            return time.time()

    async def _wait_for_votes(self) -> bool:
        """Wait until the controllers have a quorum without this node, if it is a controller. Return True if it waited.

        Without a quorum nobody would elect leaders for its partitions, and nobody would let it shut down."""
        patience, has_waited = _Patience(self._patience_s), False
        while True:
            votes = await self._ask_votes()
            missing = find_missing_votes(votes or (), self._broker)
            if votes is not None and not missing:
                return has_waited
            if missing:
                self._report(f"the other controllers would have no quorum: {list_some(missing)} not up to date")
            if patience.is_over((votes is None, len(missing))):
                raise self._give_up(f"gave up when no controller came back for {self._patience_s:g} s")
            has_waited = True
            await asyncio.sleep(self._pause_s)

    async def _ask_votes(self) -> tuple[Vote, ...] | None:
        """Return the votes; None if nobody can report them now; none if this user may not know them."""
        try:
            return await ask_votes(self._client)
        except NotAdmittedError as error:
            raise self._report_shut_out(error) from error
        except Refused as error:
            self._report(str(error))
            if error.code not in _FORBIDDEN:
                return None
            self._report(
                "if it is also a controller, the other controllers are not waited for: allow Describe on the cluster"
            )
            return ()
        except AdminError as error:
            self._report(f"no server reports the leader of the controllers: {error}")
            return None

    # Step 2

    async def _hand_over(self) -> None:
        """Send ControlledShutdown until no other replica could take over more leaderships."""
        patience = _Patience(self._patience_s)
        self._has_asked = True
        while True:
            response = await self._ask(lambda: self._client.ask(self._request, ControlledShutdownResponse))
            if response.error_code is ErrorCode.none:
                remaining = [f"{each.topic_name}-{each.partition_index}" for each in response.remaining_partitions]
                if not remaining:
                    self._report("the controller has moved its leaderships", trouble=_NO_ANSWER)
                    return
                self._report(
                    f"{format_count(len(remaining), 'partition')} cannot be led by another replica: {list_some(remaining)}"
                )
                if patience.is_over((len(remaining), 0)):
                    raise self._give_up(f"gave up when none could be handed over for {self._patience_s:g} s")
            else:
                self._judge_refusal(response.error_code)
            await asyncio.sleep(self._pause_s)

    def _judge_refusal(self, error_code: ErrorCode) -> None:
        """Return if another attempt may help: former controllers of Kafka answer STALE_CONTROLLER_EPOCH."""
        if error_code is ErrorCode.broker_not_available:
            raise NotRegistered(f"broker {self._broker} is not registered, says the controller")
        self._report(f"the controller refuses ControlledShutdown: {error_code.name}")
        if error_code in _FORBIDDEN:
            raise self._give_up(
                "allow ClusterAction on the cluster to the user that drains brokers; a Kontroller accepts it from the "
                "brokers' own addresses and from its --broker-cidr"
            )

    # All steps

    async def _ask(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer, asking until there is one. All of these requests may be sent twice."""
        while True:
            try:
                return await ask()
            except AnswerUnreadable as error:
                self._report(str(error))
                raise self._give_up("use Kafka 3.9") from error
            except Refused as error:
                self._report(str(error))
                if error.code in _FORBIDDEN:
                    raise self._give_up(
                        "allow DescribeConfigs on all topics to the user that drains brokers"
                    ) from error
            except NotAdmittedError as error:
                raise self._report_shut_out(error) from error
            except AdminError as error:
                self._report(str(error))
            await asyncio.sleep(self._pause_s)

    def _report(self, what: str, *, trouble: str = "") -> None:
        """Print a finding, unless it was the last one printed.

        It also becomes the reason if the time ends now. Good news passes `trouble`, the reason to give instead."""
        self._trouble = trouble or what
        if what != self._said:
            self._said = what
            self._say(what)

    def _report_shut_out(self, error: NotAdmittedError) -> NotDrained:
        self._report(str(error))
        return self._give_up("correct the file of --command-config or --properties")

    def _give_up(self, why: str) -> NotDrained:
        state = "it is out of service until it is restarted" if self._has_asked else "nothing was changed"
        return NotDrained(f"broker {self._broker} is not drained: {self._trouble}; {why}; {state}")


class _Patience:
    """Ends when a measure, for which less is better, has not fallen for some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._least: tuple[int, int] | None = None
        self._since_s = 0.0

    def is_over(self, measure: tuple[int, int]) -> bool:
        now_s = asyncio.get_running_loop().time()
        if self._least is None or measure < self._least:
            self._least, self._since_s = measure, now_s
        return now_s - self._since_s >= self._seconds
