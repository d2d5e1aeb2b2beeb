"""Makes a broker ready to be stopped, over Kafka's protocol alone: with Kafka's own controller as with ours.

1. Waits until stopping the broker leaves every partition enough replicas in sync. This comes first, because handing
   leaderships over already takes the broker out of the ISRs: a partition that has no replica to spare would refuse
   its producers (acks=all) from that moment on. While it waits here the broker serves as ever, and if the wait is in
   vain nothing was changed. Brokers that are stopped together take turns, in the order of their ids, and look again when
   theirs has come: else each would count on the others.
2. Asks the controller to take the broker's leaderships and ISR memberships away (ControlledShutdown), again and again
   until nothing remains that another replica could lead. The broker's epoch is not known to clients; -1 switches that
   check off in both controllers. A broker without ZooKeeper nobody can do that for: it does it itself when it is stopped
   (KIP-631), so its drain ends here. Where it is one of the controllers, too, it first waits until the others can decide
   without it: else nobody would lead what it leads, and nobody would let it go.
3. Looks once more, and waits: other brokers may have been stopped at the same moment. A new controller knows nothing
   of step 2 and may have given leaderships back, which are then handed over again.

A wait ends early when it leads nowhere: when no replica has come into sync and no broker has come back for
`patience_s`. A replica whose broker is alive may be catching up, one whose broker is dead may be started again; neither
can be distinguished from one that never comes, as when all brokers are stopped for good.

From step 2 on the controller takes the broker for one that shuts down: it elects it nowhere and keeps it out of every
ISR. A broker that is not stopped then stays like that until it is restarted (registers again), or another controller
takes over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Set
from typing import Final, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse

from controller_core.model.draining.broker_stop import (
    count_absent,
    count_missing_replicas,
    explain,
    explain_enough,
    find_obstacles,
    find_still_led,
    find_turn,
)
from controller_core.model.draining.cluster_picture import ClusterPicture
from controller_core.model.draining.quorum_votes import Vote, find_missing_votes
from controller_core.model.ids import BrokerId, TopicName
from controller_core.model.wording import format_count, list_some
from controller_core.wire.client.cluster_picture import EVERYTHING, read_picture
from controller_core.wire.client.min_insync_replicas import ConfigRefused, ask_min_insync_replicas
from controller_core.wire.client.quorum import QuorumRefused, has_quorum
from controller_core.wire.client.quorum_votes import ask_votes
from controller_core.wire.client.request_client import (
    AnswerUnreadable,
    ControllerClient,
    NotAdmitted,
    RequestError,
)
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse

PAUSE_S: Final = 1.0

_FORBIDDEN: Final = (ErrorCode.cluster_authorization_failed, ErrorCode.topic_authorization_failed)

_NO_ANSWER: Final = "the controller has not answered yet"

Answer = TypeVar("Answer")


class NotDrained(Exception):
    """The broker is not ready to be stopped; the message is one line that says why."""


class NotRegistered(Exception):
    """The broker is no member of the cluster: it has nothing to hand over."""


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
        self._patience_s = patience_s
        self._say = say
        self._trouble = _NO_ANSWER
        self._said = ""
        self._has_asked = False
        """Whether the controller may have begun to take the broker out of service."""

    async def run(self, deadline_s: float) -> None:
        """Returns when the broker may be stopped. Raises `NotDrained` and `NotRegistered`."""
        try:
            async with asyncio.timeout(deadline_s):
                await self._run()
        except TimeoutError as error:
            raise self._given_up(f"gave up after {deadline_s:g} s") from error

    async def _run(self) -> None:
        picture = await self._wait_for_replicas()
        turn = find_turn(picture, self._broker)
        if turn:
            await asyncio.sleep(turn * self._pause_s)
            picture = await self._wait_for_replicas()
        if await self._asked(lambda: has_quorum(self._client)):
            if await self._wait_for_votes():
                await self._wait_for_replicas()
            self._report("it hands over what it leads when it is stopped, as brokers without ZooKeeper do")
            return
        await self._hand_over()
        while led := find_still_led(await self._wait_for_replicas(), self._broker):
            self._report(
                f"{format_count(len(led), 'partition')} still led by it: {list_some([place.partition for place in led])}"
            )
            await asyncio.sleep(self._pause_s)
            await self._hand_over()

    # Steps 1 and 3

    async def _wait_for_replicas(self) -> ClusterPicture:
        """Waits until every partition has enough replicas in sync without the broker.

        Returns what was seen then, without the topics that were just being deleted."""
        patience = _Patience(self._patience_s)
        minimum: dict[TopicName, int] = {}
        while True:
            picture = await self._picture()
            minimum |= await self._minimum_of(picture.list_topics_on(self._broker) - minimum.keys())
            picture = picture.select_topics(minimum.keys())
            waiting = find_obstacles(picture, self._broker, minimum)
            if not waiting:
                self._report(explain_enough(picture, self._broker, minimum), trouble=_NO_ANSWER)
                return picture
            self._report(explain(waiting, picture.brokers))
            if patience.is_over((count_missing_replicas(waiting), count_absent(waiting, picture.brokers))):
                raise self._given_up(f"gave up when nothing came back for {self._patience_s:g} s")
            await asyncio.sleep(self._pause_s)

    async def _picture(self) -> ClusterPicture:
        picture = read_picture(await self._asked(lambda: self._client.ask(EVERYTHING, MetadataResponse)))
        if self._broker not in picture.brokers:
            raise NotRegistered(
                f"broker {self._broker} is not registered: alive are {list_some(sorted(picture.brokers)) or 'none'}"
            )
        return picture

    async def _minimum_of(self, topics: Set[TopicName]) -> dict[TopicName, int]:
        return await self._asked(lambda: ask_min_insync_replicas(self._client, topics))

    # In place of step 2 without ZooKeeper

    async def _wait_for_votes(self) -> bool:
        """Waits until the controllers can decide without the node, where it is one of them. Returns whether it waited."""
        patience, has_waited = _Patience(self._patience_s), False
        while True:
            votes = await self._votes()
            missing = find_missing_votes(votes or (), self._broker)
            if votes is not None and not missing:
                return has_waited
            if missing:
                self._report(f"too few controllers would be left to decide: {list_some(missing)} not up to date")
            if patience.is_over((votes is None, len(missing))):
                raise self._given_up(f"gave up when no controller came back for {self._patience_s:g} s")
            has_waited = True
            await asyncio.sleep(self._pause_s)

    async def _votes(self) -> tuple[Vote, ...] | None:
        """None where nobody can say it now. Nobody votes as far as a user is told who may not know it."""
        try:
            return await ask_votes(self._client)
        except NotAdmitted as error:
            raise self._shut_out(error) from error
        except QuorumRefused as error:
            self._report(str(error))
            if error.error_code not in _FORBIDDEN:
                return None
            self._report("if it is a controller, too, the others are not waited for: allow Describe on the cluster")
            return ()
        except RequestError as error:
            self._report(f"nobody says who leads the controllers: {error}")
            return None

    # Step 2

    async def _hand_over(self) -> None:
        """Returns when nothing remains that another replica could lead."""
        patience = _Patience(self._patience_s)
        request = ControlledShutdownRequest(broker_id=self._broker)
        self._has_asked = True
        while True:
            response = await self._asked(lambda: self._client.ask(request, ControlledShutdownResponse))
            if response.error_code is ErrorCode.none:
                remaining = [f"{each.topic_name}-{each.partition_index}" for each in response.remaining_partitions]
                if not remaining:
                    self._report("the controller has handed over what it led", trouble=_NO_ANSWER)
                    return
                self._report(
                    f"{format_count(len(remaining), 'partition')} cannot be led by another replica: {list_some(remaining)}"
                )
                if patience.is_over((len(remaining), 0)):
                    raise self._given_up(f"gave up when none could be handed over for {self._patience_s:g} s")
            else:
                self._judge_refusal(response.error_code)
            await asyncio.sleep(self._pause_s)

    def _judge_refusal(self, error_code: ErrorCode) -> None:
        """Returns where asking again may help: STALE_CONTROLLER_EPOCH is what Kafka's former controllers answer."""
        if error_code is ErrorCode.broker_not_available:
            raise NotRegistered(f"broker {self._broker} is not registered, says the controller")
        self._report(f"the controller refuses ControlledShutdown: {error_code.name}")
        if error_code in _FORBIDDEN:
            raise self._given_up(
                "allow ClusterAction on the cluster to whoever drains brokers; a Kontroller takes it from brokers' own "
                "addresses and from its --broker-cidr"
            )

    # Both

    async def _asked(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """An answer, however often it has to be asked for: everything asked here may be asked twice."""
        while True:
            try:
                return await ask()
            except AnswerUnreadable as error:
                self._report(str(error))
                raise self._given_up("use a Kafka of 3.9") from error
            except ConfigRefused as error:
                self._report(str(error))
                if error.error_code in _FORBIDDEN:
                    raise self._given_up("allow DescribeConfigs on all topics to whoever drains brokers") from error
            except NotAdmitted as error:
                raise self._shut_out(error) from error
            except RequestError as error:
                self._report(str(error))
            await asyncio.sleep(self._pause_s)

    def _report(self, what: str, *, trouble: str = "") -> None:
        """Says what was seen, unless it was the last thing said. It is also what to say when time is over now, unless
        it is good news and something else would be the `trouble`."""
        self._trouble = trouble or what
        if what != self._said:
            self._said = what
            self._say(what)

    def _shut_out(self, error: NotAdmitted) -> NotDrained:
        self._report(str(error))
        return self._given_up("correct what --command-config or --properties says")

    def _given_up(self, why: str) -> NotDrained:
        state = "it is out of service until it is restarted" if self._has_asked else "nothing was changed"
        return NotDrained(f"broker {self._broker} is not drained: {self._trouble}; {why}; {state}")


class _Patience:
    """Ends when a measure, of which less is better, has not fallen for a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._least: tuple[int, int] | None = None
        self._since_s = 0.0

    def is_over(self, measure: tuple[int, int]) -> bool:
        now_s = asyncio.get_running_loop().time()
        if self._least is None or measure < self._least:
            self._least, self._since_s = measure, now_s
        return now_s - self._since_s >= self._seconds
