"""The webhook's HTTPS server.

Its certificate and key are two files, like a mounted Secret, and are read again when they change, so that a renewal by
cert-manager needs no restart. Callers are authenticated only if an authority is set (`callers`), so connections, bytes
and the concurrency of questions are limited. If a question cannot be answered, the request fails, and the API server
follows the webhook's `failurePolicy`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import kopf
import orjson
import structlog
from aiohttp import web

from controller_core.audit.trail import NO_TRAIL, AuditTrail
from controller_core.process.bounded_http import serve_http
from controller_core.process.http_access.certificate import ServedCertificate
from controller_core.process.http_access.door import mark_known
from controller_core.wire.limits.complaints import Complaints
from controller_core.wire.listener.refusals import Refusals
from controller_operator.admission.callers import Callers
from controller_operator.admission.question_room import NoRoom, Place, QuestionRoom
from controller_operator.admission.review import AdmissionReview, Asked, NotJudged, make_answer_of_kopf
from controller_operator.kubernetes.audited_objects import record_question

PATH: Final = "/validate"
_MAX_QUESTION_BYTES: Final = 8 << 20
"""Two versions of an object, each of etcd's largest size, and some room."""
_READ_S: Final = 5.0
_log = structlog.get_logger(__name__)


class AdmissionServer:
    """The webhook's server for kopf (`settings.admission.server`). It serves one path, `PATH`.

    kopf's own `WebhookServer` has a limit of 1 MB for questions and none for their number, refuses objects that a
    handler could not judge, and does not read a renewed certificate."""

    def __init__(
        self,
        endpoint: str,
        certificate: ServedCertificate,
        callers: Callers | None = None,
        trail: AuditTrail = NO_TRAIL,
        refusals: Refusals | None = None,
    ) -> None:
        """`endpoint`: https://HOST:PORT. `callers`: the only ones that are answered, by the authority of `certificate`;
        None: everybody. `trail`: gets the user of each write. `refusals`: those of the process."""
        self._refusals = refusals
        self._trail = trail
        self._callers = callers
        self._endpoint = endpoint
        self._certificate = certificate

    async def __call__(self, fn: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        """Serve until closed. Raises `OSError` if the port is taken."""
        where = urlsplit(self._endpoint)
        application = make_application(fn, self._callers, self._trail)
        find_context, refusals = self._certificate.find_context, self._refusals
        stop = await serve_http(application, where.hostname, where.port or 443, tls=find_context, refusals=refusals)
        try:
            yield {"url": f"{self._endpoint}{PATH}"}
            await asyncio.Event().wait()
        finally:
            await stop()


def make_application(
    fn: kopf.WebhookFn, callers: Callers | None = None, trail: AuditTrail = NO_TRAIL
) -> web.Application:
    """Return the application that answers questions by kopf's function. See `AdmissionServer`."""
    application = web.Application()
    application.add_routes([web.post(PATH, _make_handler(fn, callers, trail))])
    return application


def _make_handler(
    fn: kopf.WebhookFn, callers: Callers | None, trail: AuditTrail
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    room = QuestionRoom()
    complaints = Complaints(_log)

    async def respond(request: web.Request) -> web.StreamResponse:
        address = request.remote or "unknown"
        certificate = request.get_extra_info("peercert")
        if callers is not None:
            why_not = callers.refuse(certificate)
            if why_not is not None:
                complaints.warn((address, why_not), "webhook: caller refused", address=address, why=why_not)
                raise web.HTTPForbidden(text="show a client certificate that the webhook's clientCa allows\n")
            mark_known(request)
        try:
            with room.enter(address) as place:
                asked = await _read(request, place)
                place.begin()
                return await _answer(asked, fn, trail, complaints)
        except NoRoom as error:
            complaints.warn((address, str(error)), "webhook: question refused", address=address, why=str(error))
            raise web.HTTPServiceUnavailable(text=f"{error}\n") from error

    return respond


async def _answer(asked: Asked, fn: kopf.WebhookFn, trail: AuditTrail, complaints: Complaints) -> web.Response:
    try:
        said = make_answer_of_kopf(asked.uid, await fn(asked.make_kopf_request()))
    except NotJudged as error:
        _log.error("not judged", object=str(asked), error=str(error))
        raise web.HTTPInternalServerError from error
    _record(trail, asked, said["response"])
    if not said["response"]["allowed"]:
        why = said["response"]["status"]["message"]
        complaints.inform(("refused", str(asked)), "refused", object=str(asked), why=why)
    return web.Response(body=orjson.dumps(said), content_type="application/json")


def _record(trail: AuditTrail, asked: Asked, said: Mapping[str, Any]) -> None:
    """Record a write that is not only a trial."""
    if not asked.dry_run:
        record_question(
            trail,
            operation=asked.operation,
            user=asked.user_info,
            before=asked.old_object,
            after=asked.object,
            refusal=None if said["allowed"] else said["status"]["message"],
        )


async def _read(request: web.Request, place: Place) -> Asked:
    try:
        async with asyncio.timeout(_READ_S):
            sent = await _read_body(request, place)
        return AdmissionReview.model_validate(orjson.loads(sent)).request
    except TimeoutError as error:
        raise web.HTTPRequestTimeout from error
    except ValueError as error:  # includes the errors of JSON and of a model
        raise web.HTTPBadRequest(text=f"not an AdmissionReview about one of our kinds: {error}\n") from error


async def _read_body(request: web.Request, place: Place) -> bytes:
    """Return the body. Each part takes its room when it has arrived."""
    sent = bytearray()
    async for part in request.content.iter_any():
        place.receive(len(part))
        sent += part
        if len(sent) > _MAX_QUESTION_BYTES:
            raise web.HTTPRequestEntityTooLarge(_MAX_QUESTION_BYTES, len(sent))
    return bytes(sent)
