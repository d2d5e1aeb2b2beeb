"""One connection from a broker or a client: answers its requests strictly in order.

Only the first bytes of a request are read at first. If the caller may not send it (`gate`), or it is too large
(`request_limits`), it is refused before the rest is read into memory, within a budget for all requests. APIs of the
controller are decoded and answered; others go to a broker (`upstream`). While an answer is pending, the connection
regularly checks that the client is still there. The answer is in the same budget until the client has read it.

An invalid request closes this connection, with one log line, like in Kafka, and affects no other: after a broken frame
nothing can be trusted, and an error response would need the request's format.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

import structlog
from kio.schema.errors import ErrorCode

from controller_core.model.access import Need
from controller_core.model.authorization.principal import Caller
from controller_core.model.scram import CredentialsOutOfReach
from controller_core.wire.api_table import Handling
from controller_core.wire.authentication.login import ClientNotLoggedIn, Logins
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.codecs.decoding import TooManyItems, Undecodable
from controller_core.wire.codecs.frames import (
    PIECE_BYTES,
    FrameCut,
    FrameError,
    FrameTooLarge,
    NotKafka,
    RequestHead,
    RequestStart,
    Unencodable,
    limit_answer,
    make_frame,
    read_request_start,
    read_rest,
)
from controller_core.wire.limits.budget import SMALL_ANSWER_BYTES, ByteBudget, Unread
from controller_core.wire.limits.complaints import Complaints
from controller_core.wire.limits.gate import Gate, find_standing
from controller_core.wire.limits.ledger import NoRoom, Place
from controller_core.wire.limits.listener_limits import ListenerLimits
from controller_core.wire.limits.request_limits import LARGE_ANSWERS
from controller_core.wire.listener import audited
from controller_core.wire.listener.disguises import find_judged_api
from controller_core.wire.listener.owned_api import (
    AnswerFailedError,
    Api,
    BrokerQuestion,
    NoAnswerNow,
    Pending,
    Throttled,
    VersionNotServed,
)
from controller_core.wire.listener.refusals import Reason, Refusals
from controller_core.wire.listener.relay import PRODUCE, Answer, UpstreamError
from controller_core.wire.listener.rules import ListenerRules
from controller_core.wire.listener.upstream import RelayTargets, SilentBrokers, Upstream, take_unread

T = TypeVar("T")

log = structlog.get_logger()


class _RefusedApiError(Exception):
    """A control request from a client that takes the controller for a broker."""


class _NotPassedOnError(Exception):
    """A request for brokers that is not relayed."""


_COMPLAINTS: Final[Mapping[type[Exception], str]] = {
    ClientNotLoggedIn: "connection closed: login failed",
    CredentialsOutOfReach: "connection closed: credentials cannot be read now",
    NoRoom: "connection refused: too many",
    _NotPassedOnError: "connection closed: request is not relayed",
    _RefusedApiError: "connection closed: refused request",
}
_REASONS: Final[Mapping[type[Exception], Reason]] = {ClientNotLoggedIn: Reason.LOGIN, NoRoom: Reason.LIMIT}


class ClientConnection:
    """Serves one connection until it ends."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        caller: Caller,
        place: Place,
        secured: SecuredListener | None,
        apis: Mapping[int, Api],
        relay_targets: RelayTargets | None,
        limits: ListenerLimits,
        gate: Gate,
        budgets: Mapping[Need, ByteBudget],
        rules: ListenerRules,
        silent: SilentBrokers,
        complaints: Complaints,
        auditor: audited.Auditor,
        refusals: Refusals,
    ) -> None:
        """`caller` is the client, unless it logs in here. `secured` is None for PLAINTEXT.

        `place` is the connection's place in the ledger. `relay_targets` is None if nothing is relayed. `budgets` are by
        the caller's right. `silent`, `complaints` and `refusals` are shared by all connections.
        """
        self._reader = reader
        self._writer = writer
        self._apis = apis
        self._limits = limits
        self._gate = gate
        self._budgets = budgets
        self._rules = rules
        self._complaints = complaints
        self._auditor = auditor
        self._refusals = refusals
        self._unnamed = caller
        self._place = place
        self._unread: Unread | None = None
        self._is_secured = secured is not None
        self._logins: Logins | None = None
        if secured is not None and secured.has_logins:
            self._logins = Logins(
                reader,
                self._send_soon,
                address=caller.address,
                listener=secured,
                api_versions=self._versions,
                budget=budgets[Need.NOBODY],
            )
        self._passes_on = relay_targets is not None
        self._upstream = Upstream(
            relay_targets or (lambda: ()),
            connect_timeout_ms=limits.upstream_connect_timeout_ms,
            answer_timeout_ms=limits.upstream_answer_timeout_ms,
            max_frame_bytes=limits.max_answer_bytes,
            silent=silent,
            place=place,
        )
        self._log = log.bind(peer=_peer(writer))
        writer.transport.set_write_buffer_limits(high=1)  # drained means sent; with TLS the buffer is never below 0

    @property
    def _caller(self) -> Caller:
        return self._unnamed if self._logins is None else self._logins.caller

    async def serve(self) -> None:
        """Answer requests until the client leaves or something is wrong. The connection is closed on return."""
        try:
            if self._logins is None or await self._logins.begin():
                if self._is_secured:
                    self._place.settle(find_standing(self._gate, self._caller))
                await self._answer_all()
        except (ClientNotLoggedIn, CredentialsOutOfReach, NoRoom, _NotPassedOnError, _RefusedApiError) as error:
            self._complain(error)
        except VersionNotServed as error:
            self._log.debug("connection closed: version not served", error=str(error))
        except (FrameError, Undecodable) as error:
            self._complain_of_bytes(error)
        except NoAnswerNow as error:
            self._inform("connection closed: no answer", error)
        except UpstreamError as error:
            self._inform("connection closed: no broker to relay to", error)
        except TimeoutError as error:
            self._inform("connection closed: idle, or the client did not read its answer", error)
            self._writer.transport.abort()
        except OSError as error:
            self._log.debug("connection closed by the client", error=str(error))
        except (AnswerFailedError, Unencodable):
            self._log.exception("connection closed: a request could not be answered")
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection and the upstream one. Idempotent."""
        self._give_back()
        self._upstream.close()
        self._writer.close()

    async def _answer_all(self) -> None:
        idle_s = self._limits.idle_timeout_ms / 1000
        patience_s = min(self._limits.first_request_timeout_ms / 1000, idle_s)
        while True:
            async with asyncio.timeout(patience_s):
                start = await read_request_start(self._reader, self._limits.max_frame_bytes)
            if start is None:
                return
            patience_s = idle_s
            if self._logins is not None and await self._logins.handle_renewal(start):
                continue
            response = await self._answer(start)
            if isinstance(response, Answer):
                await self._pass_on(response)
            elif isinstance(response, Throttled):
                await self._send_soon(response.frame)
                self._give_back()
                await self._mute(response.throttle_ms)
            elif response is not None:
                await self._send_soon(response)
                self._give_back()

    async def _mute(self, throttle_ms: int) -> None:
        """Read nothing from the client for this time, as Kafka mutes a channel. Its bytes wait on its side.

        The client may leave, and the idle timeout applies as usual.
        """
        self._upstream.close()
        async with asyncio.timeout(self._limits.idle_timeout_ms / 1000):
            await self._attend(asyncio.sleep(throttle_ms / 1000))

    async def _pass_on(self, answer: Answer) -> None:
        """Relay a broker's answer as it arrives. If either end stops in the middle, the connection soon ends."""
        pieces = answer.frame()
        while True:
            async with asyncio.timeout(self._limits.idle_timeout_ms / 1000):
                piece = await anext(pieces, None)
            if piece is None:
                return
            await self._send(piece, self._limits.idle_timeout_ms / 1000)

    async def _send_soon(self, response: bytes) -> None:
        await self._send(
            response, min(self._limits.idle_timeout_ms / 1000, self._limits.frame_timeout_s(len(response)))
        )

    async def _send(self, data: bytes, timeout_s: float) -> None:
        """Send in pieces, because TLS has a buffer below, which is empty when the next piece was accepted."""
        async with asyncio.timeout(timeout_s):
            with memoryview(data) as whole:
                for offset in range(0, len(whole), PIECE_BYTES):
                    self._writer.write(bytes(whole[offset : offset + PIECE_BYTES]))
                    await self._writer.drain()
                    if self._unread is not None:
                        self._unread.note_progress()

    def _hold(self, answer: object, budget: ByteBudget) -> None:
        """Take the share of an answer that is in memory as a whole."""
        frame = answer.frame if isinstance(answer, Throttled) else answer
        if self._unread is None and isinstance(frame, bytes):
            self._unread = budget.hold(len(frame), self._end_unread)

    def _give_back(self) -> None:
        """Give back the share of the answer."""
        if self._unread is not None:
            self._unread.give_back()
            self._unread = None

    def _end_unread(self) -> None:
        """Close the connection, because its client does not read while the memory is short."""
        event = "connection closed: its client does not read its answer"
        why = "unread answers have all the memory of callers of its kind"
        self._complaints.warn(event, event, address=str(self._unnamed.address), why=why)  # a stranger may have many
        self._writer.transport.abort()

    def _complain_of_bytes(self, error: Exception) -> None:
        """Warn once for each kind of error and address, whatever the bytes are: strangers choose them."""
        kind = type(error).__name__
        self._log_once(self._complaints.warn, "connection closed: bad request", error, about=kind, kind=kind)
        if not isinstance(error, FrameCut):
            self._refusals.count(Reason.BYTES)

    def _complain(self, error: Exception) -> None:
        """Warn about an error that misconfigured clients repeat."""
        self._log_once(self._complaints.warn, _COMPLAINTS[type(error)], error, about=str(error))
        if (reason := _REASONS.get(type(error))) is not None:
            self._refusals.count(reason)

    def _inform(self, event: str, error: Exception) -> None:
        self._log_once(self._complaints.inform, event, error)

    def _log_once(
        self, write: Callable[..., bool], event: str, error: Exception, *, about: str = "", **values: object
    ) -> None:
        """Log a line once a minute for each address and subject, by default the event: strangers cause as many errors
        as they like."""
        address = str(self._unnamed.address)
        write((address, about or event), event, address=address, error=str(error), **values)

    async def _answer(self, start: RequestStart) -> bytes | Throttled | Answer | None:
        """Authorize a request by its first bytes, read the rest when there is room for it, and answer."""
        head, api = start.head, self._apis.get(start.head.api_key)
        if api is None:
            self._require_passed_on(head)
        refusal = await self._judge(head.api_key)
        if api is None and refusal is not None:
            self._auditor.note_refusal(head, self._caller, refusal)
            raise _NotPassedOnError(f"API {head.api_key} is relayed only for authorized callers: {refusal.name}")
        limit = self._most_bytes(head, api, is_refused=refusal is not None)
        if start.length > limit:
            raise FrameTooLarge(
                f"a request of API {head.api_key} has {start.length} bytes; the limit is {limit}: split it"
            )
        budget = self._find_budget(head, is_refused=refusal is not None)
        async with self._share(start, budget) as (content, shrink):
            if api is None:
                await self._judge_content(head, content)
            asked = self._auditor.begin(head, content, self._caller, is_refused=refusal is not None)
            answering: Coroutine[Any, Any, bytes | Throttled | Answer | None]
            if api is None:
                answering = self._upstream.exchange(head, content)
            elif refusal is None:
                answering = self._finish_answer(self._own_answer(api, head, bytes(content), budget), content, shrink)
            else:
                answering = self._refuse(api, head, bytes(content), refusal)
            if asked is not None:
                answering = self._read_to_show(answering)
            answer = await audited.show(asked, self._attend(answering))
            self._hold(answer, budget)
            return answer

    async def _judge(self, api_key: int) -> ErrorCode | None:
        """Return the error for the caller's request to an API, or None if it is permitted."""
        refusal = await self._gate.why_not(api_key, self._caller)
        if refusal is not None and refusal is not ErrorCode.not_controller:
            self._refusals.count(Reason.RIGHT)
        return refusal

    async def _judge_content(self, head: RequestHead, content: bytearray) -> None:
        """Refuse to relay a request that needs another API's right, which the caller lacks."""
        judged = await find_judged_api(head, content)
        if judged != head.api_key and (refusal := await self._judge(judged)) is not None:
            self._auditor.note_refusal(head, self._caller, refusal)
            raise _NotPassedOnError(
                f"a request of API {head.api_key} that needs the right of API {judged} is relayed only for authorized "
                f"callers: {refusal.name}"
            )

    def _find_budget(self, head: RequestHead, *, is_refused: bool) -> ByteBudget:
        """Return the budget of a request. A broker's fetches must not wait for the slow requests of strangers."""
        if is_refused:
            return self._budgets[Need.NOBODY]
        is_broker = self._gate.is_broker(self._caller)
        return self._budgets[Need.BROKER if is_broker else self._rules.need_of(head.api_key)]

    def _require_passed_on(self, head: RequestHead) -> None:
        handling = self._rules.handling.get(head.api_key)
        if handling is Handling.REFUSE:
            self._refusals.count(Reason.RIGHT)
            raise _RefusedApiError(f"API {head.api_key} belongs to controllers, brokers or KRaft: it is not relayed")
        if handling is None:
            raise NotKafka(f"there is no API {head.api_key}")
        if not self._passes_on:
            raise _NotPassedOnError(f"API {head.api_key} {self._rules.why_not_passed_on}")

    def _most_bytes(self, head: RequestHead, api: Api | None, *, is_refused: bool) -> int:
        limits = self._limits
        if is_refused:
            return limits.max_refused_request_bytes
        if api is not None:
            return min(limits.max_own_request_bytes, api.limits.max_bytes)
        return limits.max_frame_bytes if head.api_key == PRODUCE else limits.max_passed_on_bytes

    @asynccontextmanager
    async def _share(
        self, start: RequestStart, budget: ByteBudget
    ) -> AsyncIterator[tuple[bytearray, Callable[[int], None]]]:
        """Yield the content of a request, which holds its share of the memory until the end of the block.

        Yield also the function that gives back a part of the share.
        """
        timeout_s = self._limits.frame_timeout_s(start.length)
        # A stack, because the timeout ends when the request has been read, and the share when it is answered.
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(timeout_s):
                    shrink = await stack.enter_async_context(budget.share(start.length))
                    content = await read_rest(self._reader, start)
            except TimeoutError as error:
                raise FrameCut(f"{start.length} bytes did not arrive within {timeout_s:.0f} s") from error
            yield content, shrink

    async def _finish_answer(
        self,
        answering: Awaitable[bytes | Throttled | Answer | Pending[bytes | Throttled]],
        content: bytearray,
        shrink: Callable[[int], None],
    ) -> bytes | Throttled | Answer:
        """Return an answer. While it is pending, its request is neither in memory nor in the budget."""
        answer = await answering
        if not isinstance(answer, Pending):
            return answer
        content.clear()
        shrink(answer.size_bytes)
        return await answer.finish()

    async def _attend(self, answering: Coroutine[Any, Any, T]) -> T:
        """Return the answer. Raises `OSError` or `UpstreamError` if the client or the broker leaves before."""
        task = asyncio.create_task(answering)
        try:
            while True:
                done, _ = await asyncio.wait((task,), timeout=self._limits.attention_interval_ms / 1000)
                if done:
                    return task.result()
                if self._reader.at_eof() or self._reader.exception() is not None:
                    raise ConnectionResetError("the client left before its answer")
                self._upstream.check()
        finally:
            task.cancel()

    async def _read_to_show(
        self, answering: Awaitable[bytes | Throttled | Answer | None]
    ) -> bytes | Throttled | Answer | None:
        """Return a broker's answer as a whole if the auditor can see it, or unread. Raises `UpstreamError`."""
        answer = await answering
        if not isinstance(answer, Answer) or answer.length > audited.MOST_ANSWER_BYTES:
            return answer
        timeout_s = self._limits.frame_timeout_s(answer.length)
        try:
            async with asyncio.timeout(timeout_s):
                return make_frame(await answer.content())
        except TimeoutError as error:
            raise UpstreamError(
                f"the {answer.length} bytes of the broker's answer did not arrive within {timeout_s:.0f} s"
            ) from error

    async def _own_answer(
        self, api: Api, head: RequestHead, content: bytes, budget: ByteBudget
    ) -> bytes | Throttled | Answer | Pending[bytes | Throttled]:
        try:
            answer = await self._respond(api, head, content, budget)
        except TooManyItems as error:
            return await self._too_large(api, head, error)
        if not isinstance(answer, BrokerQuestion):
            return answer
        if self._passes_on and await self._may_ask(answer):
            try:
                return await self._brokers_answer(answer)
            except (UpstreamError, Undecodable) as error:
                self._inform("answered without a broker", error)
        return await self._answer_in_line(api, budget, answer.otherwise)

    async def _respond(
        self, api: Api, head: RequestHead, content: bytes, budget: ByteBudget
    ) -> bytes | Throttled | BrokerQuestion | Pending[bytes | Throttled]:
        """Answer when there is room for the answer, which takes it."""
        respond = partial(api.respond, head, content, self._caller)
        if not api.may_wait or api.key not in LARGE_ANSWERS:
            return await self._answer_in_line(api, budget, respond)
        answer = await respond()
        if not budget.is_full or not isinstance(answer, bytes) or len(answer) <= SMALL_ANSWER_BYTES:
            self._hold(answer, budget)
            return answer
        # There is no memory for it. Make it again in turn: what it waited for has happened.
        del answer
        return await self._answer_in_line(api, budget, respond, timeout_s=self._limits.frame_timeout_ms / 1000)

    async def _answer_in_line(
        self, api: Api, budget: ByteBudget, make: Callable[[], Awaitable[T]], *, timeout_s: float | None = None
    ) -> T:
        """Make an answer. If it can be large, wait until it is its turn, and there is room for it."""
        if api.key not in LARGE_ANSWERS:
            return await make()
        rank, address = find_standing(self._gate, self._caller), str(self._unnamed.address)
        async with budget.line_of(api.key).turn(rank, address):
            await budget.wait_for_room()
            async with asyncio.timeout(timeout_s):
                answer = await make()
            self._hold(answer, budget)
            return answer

    async def _may_ask(self, question: BrokerQuestion) -> bool:
        return question.judged_as is None or await self._gate.why_not(question.judged_as, self._caller) is None

    async def _versions(self, head: RequestHead, content: bytes) -> bytes:
        """Answer ApiVersions for a client that has not logged in yet."""
        api = self._apis.get(head.api_key)
        if api is None:
            raise NoAnswerNow("there is no answer to ApiVersions")
        answer = await self._own_answer(api, head, content, self._budgets[Need.NOBODY])
        if not isinstance(answer, bytes):
            raise NoAnswerNow("brokers are not asked before a login")
        return answer

    async def _brokers_answer(self, question: BrokerQuestion) -> bytes | Answer:
        """Ask a broker. Raises `UpstreamError`, and `Undecodable` if the answer fits none of the versions that were
        tried."""
        ask = partial(self._upstream.ask, question.head, question.content, may_be_twice=question.may_be_twice)
        if question.answered is None:
            return await ask(take_unread)
        try:
            take = partial(Answer.content, most_bytes=limit_answer(question.head.api_key, len(question.content)))
            return question.answered(await ask(take))
        except Undecodable:
            if question.older is None:
                raise
        return await self._brokers_answer(question.older)

    async def _refuse(self, api: Api, head: RequestHead, content: bytes, error_code: ErrorCode) -> bytes:
        try:
            refusal = await api.make_refusal(head, content, error_code)
        except TooManyItems as error:
            return await self._too_large(api, head, error, error_code)
        if refusal is None:
            raise _RefusedApiError(f"API {head.api_key} is refused with {error_code.name}")
        return refusal

    async def _too_large(
        self, api: Api, head: RequestHead, why: TooManyItems, error_code: ErrorCode = ErrorCode.invalid_request
    ) -> bytes:
        """Refuse a whole request by its API's error response. Raises `why` if the API has none."""
        refusal = await api.make_refusal(head, None, error_code)
        if refusal is None:
            raise why
        self._log_once(self._complaints.warn, "request refused: too large", why, api_key=head.api_key)
        return refusal


def _peer(writer: asyncio.StreamWriter) -> str:
    address = writer.get_extra_info("peername")
    return f"{address[0]}:{address[1]}" if address else "unknown"
