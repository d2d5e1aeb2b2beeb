"""What the API server is answered over HTTPS, whatever it or somebody else sends."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from controller_operator.admission.judge import Judge, Judgement
from controller_operator.admission.server import PATH, Certificate, serve_admission
from controller_operator.kubernetes.object_store import ObjectStore, Raw
from devcluster.clusters.certificates import CertificateFiles, make_certificate
from devcluster.running.ports import release_port, reserve_port
from tests.unit.operator.clusters import raw

TOPIC = raw("KafkaTopic", {"partitions": 1})


@dataclass
class Answering:
    """A judge that answers as told, and what it was asked; and where it is served."""

    judgement: Judgement = field(default_factory=Judgement)
    error: Exception | None = None
    heard: list[tuple[Raw, Raw | None]] = field(default_factory=list)
    is_held: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def ask(self, question: Any, trusted: Path, *, method: str = "POST", path: str = PATH) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=trusted)
        async with aiohttp.ClientSession() as client:
            given: Any = {"data": question} if isinstance(question, bytes) else {"json": question}
            url = f"https://localhost:{self.port}{path}"
            async with client.request(method, url, ssl=context, **given) as response:
                is_json = response.content_type == "application/json"
                return response.status, await (response.json() if is_json else response.text())


class ScriptedJudge(Judge):
    def __init__(self, around: Answering) -> None:
        async def nowhere() -> Any:
            raise AssertionError("nothing is looked up")

        super().__init__(ObjectStore(), nowhere)
        self._around = around

    async def judge(self, asked: Raw, before: Raw | None = None) -> Judgement:
        self._around.heard.append((asked, before))
        await self._around.is_held.wait()
        if self._around.error is not None:
            raise self._around.error
        return self._around.judgement


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return make_certificate(tmp_path_factory.mktemp("certificate"), "localhost")


@asynccontextmanager
async def answering(certificate: Certificate, **script: Any) -> AsyncIterator[Answering]:
    around = Answering(**script)
    around.is_held.set()
    around.port = reserve_port()
    release_port(around.port)
    stop = await serve_admission(f"https://127.0.0.1:{around.port}", certificate, ScriptedJudge(around))
    try:
        yield around
    finally:
        await stop()


def served(files: CertificateFiles) -> Certificate:
    return Certificate(files.certificate, files.key)


def review(new: Any = TOPIC, old: Any = None, **request: Any) -> dict[str, Any]:
    about = {
        "uid": "question-1",
        "operation": "CREATE",
        "namespace": "shop",
        "name": "orders",
        "object": new,
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**about, "oldObject": old}}


async def test_what_may_be_is_allowed(files: CertificateFiles) -> None:
    async with answering(served(files)) as around:
        status, said = await around.ask(review(old=TOPIC), files.certificate)
    assert status == 200
    assert said == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "question-1", "allowed": True},
    }
    assert around.heard == [(TOPIC, TOPIC)]


async def test_a_refusal_says_why_and_warnings_are_passed_on(files: CertificateFiles) -> None:
    judgement = Judgement(refusal="TooLarge: ask for less", warnings=("UnknownBroker: " + "9" * 300,))
    async with answering(served(files), judgement=judgement) as around:
        _, said = await around.ask(review(), files.certificate)
    response = said["response"]
    assert response["allowed"] is False
    assert response["status"] == {"code": 422, "reason": "Invalid", "message": "TooLarge: ask for less"}
    (warning,) = response["warnings"]
    assert warning.startswith("UnknownBroker: 999")
    assert len(warning) <= 256, "the API server cuts more"


async def test_a_name_that_is_only_in_the_question_is_the_object_s(files: CertificateFiles) -> None:
    async with answering(served(files)) as around:
        await around.ask(review({**TOPIC, "metadata": {"generateName": "orders-"}}), files.certificate)
    ((asked, _),) = around.heard
    assert asked["metadata"] == {"generateName": "orders-", "namespace": "shop", "name": "orders", "uid": ""}


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
    async with answering(served(files)) as around:
        status, _ = await around.ask(question, files.certificate)
    assert status == 400
    assert around.heard == []


async def test_a_question_that_is_too_long_is_refused(files: CertificateFiles) -> None:
    async with answering(served(files)) as around:
        status, _ = await around.ask(b" " * ((8 << 20) + 1), files.certificate)
    assert status == 413
    assert around.heard == []


async def test_what_cannot_be_judged_fails_so_that_the_failure_policy_decides(files: CertificateFiles) -> None:
    async with answering(served(files), error=RuntimeError("a plan stumbled")) as around:
        status, said = await around.ask(review(), files.certificate)
        assert status == 500
        assert "stumbled" not in said
        around.error = None
        status, _ = await around.ask(review(), files.certificate)
    assert status == 200


async def test_too_many_questions_at_once_are_turned_away_and_the_next_one_is_answered(files: CertificateFiles) -> None:
    async with answering(served(files)) as around:
        around.is_held.clear()
        held = [asyncio.create_task(around.ask(review(), files.certificate)) for _ in range(16)]
        while len(around.heard) < len(held):  # noqa: ASYNC110 - they come over sockets
            await asyncio.sleep(0.005)
        assert (await around.ask(review(), files.certificate))[0] == 503
        around.is_held.set()
        assert {status for status, _ in await asyncio.gather(*held)} == {200}
        assert (await around.ask(review(), files.certificate))[0] == 200


async def test_a_renewed_certificate_is_used_and_one_that_is_none_is_not(tmp_path: Path) -> None:
    first = make_certificate(tmp_path, "localhost")
    certificate = served(first)
    async with answering(certificate) as around:
        (tmp_path / "old.crt").write_bytes(first.certificate.read_bytes())
        make_certificate(tmp_path, "localhost")
        certificate.renew()
        assert (await around.ask(review(), first.certificate))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await around.ask(review(), tmp_path / "old.crt")
        trusted = tmp_path / "trusted.crt"
        trusted.write_bytes(first.certificate.read_bytes())
        first.certificate.write_text("half a certif")
        certificate.renew()
        assert (await around.ask(review(), trusted))[0] == 200
        first.certificate.unlink()
        certificate.renew()
        assert (await around.ask(review(), trusted))[0] == 200


def test_a_certificate_that_is_none_is_said_at_the_start(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, "localhost")
    made.key.write_text("no key")
    with pytest.raises(OSError, match="PEM"):
        served(made)
    made.key.unlink()
    with pytest.raises(FileNotFoundError):
        served(made)
