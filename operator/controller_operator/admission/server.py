"""The webhook's HTTPS server.

Its certificate and key are two files, like a mounted Secret, and are read again when they change, so that a renewal by
cert-manager needs no restart. Clients are not authenticated, so the size and the concurrency of questions are limited.
If a question cannot be answered, the request fails, and the API server follows the webhook's `failurePolicy`.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import kopf
import orjson
import structlog
from aiohttp import web

from controller_core.supervision import start_supervised
from controller_operator.admission.review import AdmissionReview, Asked, NotJudged, make_answer_of_kopf

PATH: Final = "/validate"
_MAX_QUESTION_BYTES: Final = 8 << 20
"""Two versions of an object, each of etcd's largest size, and some room."""
_AT_ONCE: Final = 16
_READ_S: Final = 5.0
_RENEWED_S: Final = 30.0
_log = structlog.get_logger(__name__)


class Certificate:
    """A certificate chain and its key, in files."""

    def __init__(self, chain: Path, key: Path) -> None:
        """Raises `OSError` (including `ssl.SSLError`) if the files are unusable."""
        self._files = (chain, key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._known = self._versions()
        self.context.load_cert_chain(chain, key)

    def renew(self) -> None:
        """Use the files' present content for new connections. If it is unusable, the old certificate stays."""
        try:
            now = self._versions()
            if now == self._known:
                return
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
            self.context.load_cert_chain(*self._files)
        except OSError as error:
            _log.warning(
                "the new certificate of the webhook cannot be used", files=list(map(str, self._files)), error=str(error)
            )
            return
        self._known = now
        _log.info("the webhook has a new certificate")

    def _versions(self) -> tuple[bytes, ...]:
        return tuple(file.read_bytes() for file in self._files)


class AdmissionServer:
    """The webhook's server for kopf (`settings.admission.server`). It serves one path, `PATH`.

    kopf's own `WebhookServer` has a limit of 1 MB for questions and none for their number, refuses objects that a
    handler could not judge, and does not read a renewed certificate."""

    def __init__(self, endpoint: str, certificate: Certificate) -> None:
        """`endpoint`: https://HOST:PORT."""
        self._endpoint = endpoint
        self._certificate = certificate

    async def __call__(self, fn: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        """Serve until closed. Raises `OSError` if the port is taken."""
        where = urlsplit(self._endpoint)
        application = web.Application(client_max_size=_MAX_QUESTION_BYTES)
        application.add_routes([web.post(PATH, _make_handler(fn))])
        runner = web.AppRunner(application, access_log=None, handle_signals=False)
        await runner.setup()
        renewal = start_supervised(self._keep_renewed, name="certificate of the webhook")
        try:
            await web.TCPSite(runner, where.hostname, where.port, ssl_context=self._certificate.context).start()
            yield {"url": f"{self._endpoint}{PATH}"}
            await asyncio.Event().wait()
        finally:
            renewal.cancel()
            await runner.cleanup()

    async def _keep_renewed(self) -> None:
        while True:
            await asyncio.sleep(_RENEWED_S)
            self._certificate.renew()


def _make_handler(fn: kopf.WebhookFn) -> Callable[[web.Request], Awaitable[web.Response]]:
    room = asyncio.Semaphore(_AT_ONCE)

    async def respond(request: web.Request) -> web.Response:
        if room.locked():
            raise web.HTTPServiceUnavailable(text="too many questions at once\n")
        async with room:
            asked = await _read(request)
            try:
                said = make_answer_of_kopf(asked.uid, await fn(asked.make_kopf_request()))
            except NotJudged as error:
                _log.error("not judged", object=str(asked), error=str(error))
                raise web.HTTPInternalServerError from error
        if not said["response"]["allowed"]:
            _log.info("refused", object=str(asked), why=said["response"]["status"]["message"])
        return web.Response(body=orjson.dumps(said), content_type="application/json")

    return respond


async def _read(request: web.Request) -> Asked:
    try:
        async with asyncio.timeout(_READ_S):
            sent = await request.read()
        return AdmissionReview.model_validate(orjson.loads(sent)).request
    except TimeoutError as error:
        raise web.HTTPRequestTimeout from error
    except ValueError as error:  # includes the errors of JSON and of a model
        raise web.HTTPBadRequest(text=f"not an AdmissionReview about one of our kinds: {error}\n") from error
