"""A controller that does not answer is waited for by one worker at a time."""

import asyncio
from collections.abc import Sequence
from typing import Any

from controller_core.client.errors import OutcomeUnknown, Unreachable
from controller_core.client.transport.request_client import Address
from controller_operator.kafka.controller_reach import ControllerReach
from simulation.fast_loop import run_fast

HERE, THERE = (Address("here", 1),), (Address("there", 1),)
PATIENCE_S = 30.0


class Controllers:
    """Controllers of which some may be away. A request to these fails late."""

    def __init__(self) -> None:
        self.is_away = True
        self.asked = 0

    def open(self, bootstrap: Sequence[Address], **_: object) -> Any:
        return _Client(self, tuple(bootstrap) == HERE)


class _Client:
    def __init__(self, controllers: Controllers, may_be_away: bool) -> None:
        self._controllers = controllers
        self._may_be_away = may_be_away

    async def ask(self, _request: Any, _response_type: Any) -> Any:
        if not self._may_be_away:
            return "answer"
        self._controllers.asked += 1
        if not self._controllers.is_away:
            return "answer"
        await asyncio.sleep(PATIENCE_S)
        raise OutcomeUnknown("it said nothing")


async def ask(reach: ControllerReach, bootstrap: Sequence[Address] = HERE) -> tuple[str, float]:
    """Return the answer, and the seconds that it took."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    client: Any = reach.client(bootstrap)
    try:
        answer = await client.ask(None, None)
    except (OutcomeUnknown, Unreachable) as error:
        answer = f"{type(error).__name__}: {error}"
    return answer, round(loop.time() - began_s, 3)


def test_the_others_hear_at_once_what_the_last_one_heard() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        reach = ControllerReach(controllers.open)
        assert await ask(reach) == ("OutcomeUnknown: it said nothing", PATIENCE_S)
        answers = await asyncio.gather(*(ask(reach) for _ in range(8)))
        assert answers == [
            ("OutcomeUnknown: it said nothing", PATIENCE_S),
            *[("Unreachable: it said nothing", 0.0)] * 7,
        ]
        assert controllers.asked == 2
        assert await ask(reach, THERE) == ("answer", 0.0)

    run_fast(scenario())


def test_all_are_let_through_once_it_has_answered() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        reach = ControllerReach(controllers.open)
        await ask(reach)
        controllers.is_away = False
        assert await ask(reach) == ("answer", 0.0)
        assert [*await asyncio.gather(ask(reach), ask(reach))] == [("answer", 0.0)] * 2

    run_fast(scenario())


def test_one_who_is_cancelled_leaves_the_way_to_the_next() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        reach = ControllerReach(controllers.open)
        await ask(reach)
        trying = asyncio.create_task(ask(reach))
        await asyncio.sleep(1)
        trying.cancel()
        await asyncio.gather(trying, return_exceptions=True)
        controllers.is_away = False
        assert await ask(reach) == ("answer", 0.0)

    run_fast(scenario())
