"""The webhook's answers to the API server over HTTPS, for any request that it or somebody else sends."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from pydantic import ValidationError
from structlog.testing import capture_logs

from controller_core.audit.record import AuditRecord, Outcome
from controller_core.audit.trail import NO_TRAIL, AuditTrail
from controller_core.process.http_access import certificate as certificate_module
from controller_core.process.http_access.certificate import CertificateFiles as ServedFiles
from controller_core.process.http_access.certificate import ServedCertificate, UnusableCertificate
from controller_core.wire.listener.refusals import Refusals
from controller_operator.admission.callers import Callers
from controller_operator.admission.server import PATH, AdmissionServer
from controller_operator.kubernetes.object_store import Raw
from controller_operator.settings import OperatorSettings
from devcluster.clusters.certificates import Authority, CertificateFiles, make_certificate
from devcluster.running.ports import release_port, reserve_port
from tests.unit.operator.clusters import raw
from tests.unit.process.test_bounded_http import count_refusals

TOPIC = raw("KafkaTopic", {"partitions": 1})


@dataclass
class Answering:
    """A kopf stub with scripted answers, which notes its requests; and the address of the webhook."""

    refusal: str | None = None
    code: int = 422
    warnings: tuple[str, ...] = ()
    heard: list[tuple[Raw | None, Raw | None]] = field(default_factory=list)
    is_held: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    async def review(self, request: Any, **_: Any) -> Any:
        """Answer a review like kopf."""
        asked = request["request"]
        self.heard.append((asked["object"], asked["oldObject"]))
        await self.is_held.wait()
        response = {"uid": asked["uid"], "allowed": self.refusal is None, "warnings": [*self.warnings]}
        if self.refusal is not None:
            response["status"] = {"message": self.refusal, "code": self.code}
        return {"response": response}

    async def ask(
        self,
        question: Any,
        trusted: Path,
        *,
        method: str = "POST",
        path: str = PATH,
        shown: CertificateFiles | None = None,
    ) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=trusted)
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.key)
        async with aiohttp.ClientSession() as client:
            given: Any = {"data": question} if isinstance(question, bytes) else {"json": question}
            url = f"https://localhost:{self.port}{path}"
            async with client.request(method, url, ssl=context, **given) as response:
                is_json = response.content_type == "application/json"
                return response.status, await (response.json() if is_json else response.text())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return make_certificate(tmp_path_factory.mktemp("certificate"), "localhost")


@asynccontextmanager
async def start_answering(
    certificate: ServedCertificate, *, callers: Callers | None = None, trail: AuditTrail = NO_TRAIL, **script: Any
) -> AsyncIterator[Answering]:
    around = Answering(**script)
    around.is_held.set()
    around.port = reserve_port()
    release_port(around.port)
    refusals = Refusals(around.registry)
    server = AdmissionServer(f"https://127.0.0.1:{around.port}", certificate, callers, trail, refusals)
    serving: Any = server(around.review)
    async with aclosing(serving):
        await anext(serving)
        yield around


def serve_certificate(files: CertificateFiles, client_ca: Path | None = None) -> ServedCertificate:
    return ServedCertificate(ServedFiles(chain=files.certificate, key=files.key, client_ca=client_ca))


@pytest.fixture
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ports look at their files for each connection."""
    monkeypatch.setattr(certificate_module, "_LOOK_S", 0)


def review(new: Any = TOPIC, old: Any = None, **request: Any) -> dict[str, Any]:
    about = {
        "uid": "question-1",
        "operation": "CREATE",
        "resource": {"group": "kontroller.dev", "version": "v1alpha1", "resource": "kafkatopics"},
        "userInfo": {"username": "somebody"},
        "namespace": "shop",
        "name": "orders",
        "object": new,
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**about, "oldObject": old}}


async def test_what_may_be_is_allowed(files: CertificateFiles) -> None:
    async with start_answering(serve_certificate(files)) as around:
        status, said = await around.ask(review(old=TOPIC), files.certificate)
    assert status == 200
    assert said == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "question-1", "allowed": True},
    }
    assert around.heard == [(TOPIC, TOPIC)]


async def test_the_user_of_each_write_is_in_the_audit_except_of_a_trial(files: CertificateFiles) -> None:
    seen: list[AuditRecord] = []
    trail = AuditTrail(source="operator", journal=seen.append)
    async with start_answering(serve_certificate(files), trail=trail) as around:
        await around.ask(review(), files.certificate)
        await around.ask(review(dryRun=True), files.certificate)
        around.refusal = "TooLarge: ask for less"
        await around.ask(review(), files.certificate)
    assert [(record.principal, record.outcome, record.message) for record in seen] == [
        ("Kubernetes:somebody", Outcome.ADMITTED, ""),
        ("Kubernetes:somebody", Outcome.REFUSED, "TooLarge: ask for less"),
    ]


async def test_a_refusal_says_why_and_warnings_are_passed_on(files: CertificateFiles) -> None:
    said: dict[str, Any] = {"refusal": "TooLarge: ask for less", "warnings": ("UnknownBroker: " + "9" * 300,)}
    with capture_logs() as logged:
        async with start_answering(serve_certificate(files), **said) as around:
            for _ in range(3):
                _, said = await around.ask(review(), files.certificate)
    assert [line["why"] for line in logged if line["event"] == "refused"] == ["TooLarge: ask for less"], "once"
    response = said["response"]
    assert response["allowed"] is False
    assert response["status"] == {"code": 422, "reason": "Invalid", "message": "TooLarge: ask for less"}
    (warning,) = response["warnings"]
    assert warning.startswith("UnknownBroker: 999")
    assert len(warning) <= 256, "the API server cuts more"


async def test_a_name_that_is_only_in_the_question_is_the_object_s(files: CertificateFiles) -> None:
    async with start_answering(serve_certificate(files)) as around:
        await around.ask(review({**TOPIC, "metadata": {"generateName": "orders-"}}), files.certificate)
    ((asked, _),) = around.heard
    assert asked is not None
    assert asked["metadata"] == {"generateName": "orders-", "namespace": "shop", "name": "orders", "uid": ""}


async def test_a_deletion_is_asked_about_with_what_is_there(files: CertificateFiles) -> None:
    async with start_answering(serve_certificate(files)) as around:
        status, _ = await around.ask(review(None, TOPIC, operation="DELETE"), files.certificate)
    assert status == 200
    assert around.heard == [(None, TOPIC)]


@pytest.mark.parametrize(
    "question",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"request": {"uid": ""}}',
        review(new=None),
        review(new={"apiVersion": "v1", "kind": "Secret", "metadata": {}}),
        review(new={**TOPIC, "kind": ["KafkaTopic"]}),
        review(new={**TOPIC, "metadata": "none"}),
        review(old={**TOPIC, "metadata": 7}),
        review(uid="x" * 10_000),
    ],
)
async def test_what_is_no_question_about_our_kinds_is_refused_and_judged_by_nobody(
    files: CertificateFiles, question: Any
) -> None:
    async with start_answering(serve_certificate(files)) as around:
        status, _ = await around.ask(question, files.certificate)
    assert status == 400
    assert around.heard == []
    assert count_refusals(around.registry) == {"bytes": 1}


async def test_a_question_that_is_too_long_is_refused(files: CertificateFiles) -> None:
    async with start_answering(serve_certificate(files)) as around:
        status, _ = await around.ask(b" " * ((8 << 20) + 1), files.certificate)
    assert status == 413
    assert around.heard == []
    assert count_refusals(around.registry) == {"bytes": 1}


async def test_what_cannot_be_judged_fails_so_that_the_failure_policy_decides(files: CertificateFiles) -> None:
    async with start_answering(serve_certificate(files), refusal="a plan stumbled", code=500) as around:
        status, said = await around.ask(review(), files.certificate)
        assert status == 500
        assert "stumbled" not in said
        around.refusal = None
        status, _ = await around.ask(review(), files.certificate)
    assert status == 200


async def test_too_many_questions_at_once_are_turned_away_and_the_next_one_is_answered(files: CertificateFiles) -> None:
    async with start_answering(serve_certificate(files)) as around:
        around.is_held.clear()
        held = [asyncio.create_task(around.ask(review(), files.certificate)) for _ in range(16)]
        while len(around.heard) < len(held):  # noqa: ASYNC110 - they come over sockets
            await asyncio.sleep(0.005)
        assert (await around.ask(review(), files.certificate))[0] == 503
        around.is_held.set()
        assert {status for status, _ in await asyncio.gather(*held)} == {200}
        assert (await around.ask(review(), files.certificate))[0] == 200
    assert count_refusals(around.registry) == {"limit": 1}


async def test_slow_bodies_keep_nobody_from_asking(files: CertificateFiles) -> None:
    context = ssl.create_default_context(cafile=files.certificate)
    begun = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n{{".encode()
    async with start_answering(serve_certificate(files)) as around:
        slow = [await asyncio.open_connection("localhost", around.port, ssl=context) for _ in range(40)]
        for _, writer in slow:
            writer.write(begun)
            await writer.drain()
        assert (await around.ask(review(), files.certificate))[0] == 200
        for _, writer in slow:
            writer.transport.abort()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("callers"))


CALLERS = Callers(names=frozenset({"api-server"}))


async def test_the_caller_with_the_certificate_is_answered(files: CertificateFiles, authority: Authority) -> None:
    async with start_answering(serve_certificate(files, authority.certificate), callers=CALLERS) as around:
        shown = authority.issue("api-server")
        assert (await around.ask(review(), files.certificate, shown=shown))[0] == 200


async def test_other_callers_are_refused_before_their_question_is_read_and_the_log_says_why(
    files: CertificateFiles, authority: Authority, tmp_path: Path
) -> None:
    async with start_answering(serve_certificate(files, authority.certificate), callers=CALLERS) as around:
        with capture_logs() as logged:
            assert (await around.ask(review(), files.certificate))[0] == 403
            assert (await around.ask(review(), files.certificate, shown=authority.issue("somebody")))[0] == 403
        forged = Authority(tmp_path).issue("api-server")
        with pytest.raises(aiohttp.ClientError):
            await around.ask(review(), files.certificate, shown=forged)
    assert around.heard == []
    assert count_refusals(around.registry) == {"right": 2, "tls": 1}
    assert {line["event"] for line in logged} == {"webhook: caller refused"}
    assert [line["why"] for line in logged] == [
        "the caller shows no client certificate",
        "the certificate's common name somebody is not one that may ask",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"webhook_client_ca": Path("ca.crt")}, "webhook-client-ca has no effect without --webhook"),
        ({"webhook_client_ca": Path("ca.crt"), "webhook": "https://a:1"}, "need each other"),
        ({"webhook_client_name": ("a",), "webhook": "https://a:1"}, "need each other"),
    ],
)
def test_an_authority_needs_a_webhook_and_names(given: dict[str, Any], message: str) -> None:
    files: Any = {"webhook_certificate": Path("tls.crt"), "webhook_key": Path("tls.key")} if "webhook" in given else {}
    with pytest.raises(ValidationError, match=message):
        OperatorSettings(all_namespaces=True, **files, **given)


@pytest.mark.usefixtures("looks_at_once")
async def test_a_new_authority_of_callers_is_used(files: CertificateFiles, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    first, second = Authority(tmp_path / "first"), Authority(tmp_path / "second")
    bundle.write_bytes(first.certificate.read_bytes())
    async with start_answering(serve_certificate(files, bundle), callers=CALLERS) as around:
        with pytest.raises(aiohttp.ClientError):
            await around.ask(review(), files.certificate, shown=second.issue("api-server"))
        bundle.write_bytes(second.certificate.read_bytes())
        assert (await around.ask(review(), files.certificate, shown=second.issue("api-server")))[0] == 200


@pytest.mark.usefixtures("looks_at_once")
async def test_a_renewed_certificate_is_used_and_one_that_is_none_is_not(tmp_path: Path) -> None:
    first = make_certificate(tmp_path, "localhost")
    async with start_answering(serve_certificate(first)) as around:
        (tmp_path / "old.crt").write_bytes(first.certificate.read_bytes())
        make_certificate(tmp_path, "localhost")
        assert (await around.ask(review(), first.certificate))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await around.ask(review(), tmp_path / "old.crt")
        trusted = tmp_path / "trusted.crt"
        trusted.write_bytes(first.certificate.read_bytes())
        first.certificate.write_text("half a certif")
        assert (await around.ask(review(), trusted))[0] == 200
        first.certificate.unlink()
        assert (await around.ask(review(), trusted))[0] == 200


def test_a_certificate_that_is_none_is_said_at_the_start(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, "localhost")
    made.key.write_text("no key")
    with pytest.raises(UnusableCertificate, match=r"tls\.crt or .*tls\.key cannot be used: .*PEM"):
        serve_certificate(made)
    made.key.unlink()
    with pytest.raises(UnusableCertificate, match="No such file"):
        serve_certificate(made)
