"""The webhook as kopf serves it: the API server's questions go to the handlers, and their judgements come back."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import controller_operator.handlers  # noqa: F401 - kopf runs the handlers that it registers
from controller_core.process.http_access.certificate import CertificateFiles as ServedFiles
from controller_core.process.http_access.certificate import ServedCertificate
from controller_operator.admission.judge import Judge, Judgement
from controller_operator.admission.server import PATH, AdmissionServer
from controller_operator.kubernetes.object_intake import ObjectIntake
from controller_operator.kubernetes.object_store import KIND_CLASSES, ObjectStore, Raw
from controller_operator.watching.kopf_watcher import KopfThread
from devcluster.clusters.certificates import CertificateFiles, make_certificate
from devcluster.running.ports import release_port, reserve_port
from tests.unit.operator.clusters import raw
from tests.unit.operator.watching.http_api import http_api
from tests.unit.operator.watching.test_kopf_watcher import WATCHING

TOPIC = raw("KafkaTopic", {"partitions": 1})


@dataclass
class ScriptedJudge(Judge):
    """Gives scripted judgements, in the operator's event loop."""

    judgement: Judgement = field(default_factory=Judgement)
    error: Exception | None = None
    heard: list[tuple[Raw | None, Raw | None]] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def judge(self, asked: Raw | None, before: Raw | None = None) -> Judgement:
        assert asyncio.get_running_loop() is self.loop
        self.heard.append((asked, before))
        if self.error is not None:
            raise self.error
        return self.judgement


@dataclass
class Webhook:
    """A webhook that kopf serves."""

    url: str
    trusted: Path
    judge: ScriptedJudge

    async def ask(self, operation: str, new: Raw | None, old: Raw | None) -> tuple[int, Any]:
        about: Any = new or old
        plural = KIND_CLASSES[about["kind"]].definition.plural
        request = {
            "uid": "question-1",
            "operation": operation,
            "resource": {"group": "kontroller.dev", "version": "v1alpha1", "resource": plural},
            "userInfo": {"username": "somebody"},
            "namespace": "shop",
            "name": "orders",
            "object": new,
            "oldObject": old,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        context = ssl.create_default_context(cafile=self.trusted)
        async with aiohttp.ClientSession() as client, client.post(self.url, ssl=context, json=review) as response:
            is_json = response.content_type == "application/json"
            return response.status, await (response.json() if is_json else response.text())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return make_certificate(tmp_path_factory.mktemp("certificate"), "localhost")


@asynccontextmanager
async def serve(monkeypatch: pytest.MonkeyPatch, files: CertificateFiles) -> AsyncIterator[Webhook]:
    async with http_api() as http:

        async def load() -> Any:
            return http.configuration

        async def note(_changed: Any, _gone: Any) -> None:
            """Do nothing, because no handler works on objects."""

        monkeypatch.setattr("controller_operator.watching.session.load_configuration", load)
        port = reserve_port()
        release_port(port)
        watcher, judge = KopfThread(http.api, ("shop",)), ScriptedJudge()
        watcher.serve_webhook(
            AdmissionServer(
                f"https://127.0.0.1:{port}", ServedCertificate(ServedFiles(chain=files.certificate, key=files.key))
            ),
            judge,
        )
        intake = ObjectIntake(ObjectStore(), note)
        try:
            await watcher.start(intake, WATCHING)
            webhook = Webhook(f"https://localhost:{port}{PATH}", files.certificate, judge)
            async with asyncio.timeout(60):
                while not await is_served(webhook):  # noqa: ASYNC110 - a socket is asked
                    await asyncio.sleep(0.01)
            judge.heard.clear()
            yield webhook
        finally:
            await watcher.stop()


async def is_served(webhook: Webhook) -> bool:
    try:
        await webhook.ask("CREATE", TOPIC, None)
    except aiohttp.ClientConnectionError:
        return False
    return True


async def test_every_write_of_every_kind_is_judged_in_the_operators_loop(
    monkeypatch: pytest.MonkeyPatch, files: CertificateFiles
) -> None:
    async with serve(monkeypatch, files) as webhook:
        for kind in KIND_CLASSES:
            asked = raw(kind, {})
            for operation, new, old in (("CREATE", asked, None), ("UPDATE", asked, asked), ("DELETE", None, asked)):
                status, said = await webhook.ask(operation, new, old)
                assert (status, said["response"]["allowed"]) == (200, True)
                assert webhook.judge.heard.pop() == (new, old)
        assert webhook.judge.heard == []


async def test_a_refusal_is_said_with_its_reason_and_its_warnings(
    monkeypatch: pytest.MonkeyPatch, files: CertificateFiles
) -> None:
    async with serve(monkeypatch, files) as webhook:
        webhook.judge.judgement = Judgement(refusal="TooLarge: ask for less", warnings=("UnknownBroker: 9",))
        status, said = await webhook.ask("CREATE", TOPIC, None)
    assert status == 200
    assert said["response"] == {
        "uid": "question-1",
        "allowed": False,
        "status": {"code": 422, "reason": "Invalid", "message": "TooLarge: ask for less"},
        "warnings": ["UnknownBroker: 9"],
    }


async def test_what_a_handler_could_not_judge_is_an_error_and_no_refusal(
    monkeypatch: pytest.MonkeyPatch, files: CertificateFiles
) -> None:
    async with serve(monkeypatch, files) as webhook:
        webhook.judge.error = RuntimeError("a plan stumbled")
        status, said = await webhook.ask("CREATE", TOPIC, None)
    assert status == 500
    assert "stumbled" not in said
