"""AdmissionReview, version 1: the API server's question and the answer."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from controller_core.model.wording import shorten
from controller_operator.kubernetes.object_store import KIND_CLASSES, Raw
from controller_operator.resources.common import API_VERSION as OUR_API_VERSION

API_VERSION: Final = "admission.k8s.io/v1"
_WARNING_LIMIT: Final = 250
_WARNINGS_LIMIT: Final = 10
_MESSAGE_LIMIT: Final = 2_000
UNPROCESSABLE: Final = 422


def _ours(raw: Raw) -> Raw:
    is_ours = raw.get("apiVersion") == OUR_API_VERSION and str(raw.get("kind")) in KIND_CLASSES
    if not is_ours or not isinstance(raw.get("metadata"), dict):
        raise ValueError("not an object of one of our kinds")
    return raw


Ours = Annotated[Raw, AfterValidator(_ours)]
"""An object of one of our kinds. The rest of its content may be wrong."""


class _Sent(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class AskedResource(_Sent):
    """The kind of the objects in the question."""

    group: str
    version: str
    resource: str


class Asked(_Sent):
    """The write or deletion that somebody requests."""

    uid: str = Field(min_length=1, max_length=253)
    """Uid of the question."""
    operation: str
    resource: AskedResource
    namespace: str = ""
    name: str = ""
    user_info: Mapping[str, Any] = Field(default_factory=dict)
    object: Ours | None = None
    """None when the object is deleted."""
    old_object: Ours | None = None
    """None when the object is created."""
    dry_run: bool = False

    @model_validator(mode="after")
    def _is_about_something(self) -> "Asked":
        if self.object is None and self.old_object is None:
            raise ValueError("neither an object nor an old one")
        return self

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def make_kopf_request(self) -> Any:
        """Return the question in kopf's format."""
        request = {
            "uid": self.uid,
            "operation": self.operation,
            "resource": self.resource.model_dump(),
            "userInfo": dict(self.user_info),
            "object": self._add_name(self.object),
            "oldObject": self._add_name(self.old_object),
            "dryRun": self.dry_run,
        }
        return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": request}

    def _add_name(self, raw: Raw | None) -> Raw | None:
        """Return an object with the name and the namespace, which may be only in the question."""
        known: Raw = {"namespace": self.namespace, "name": self.name, "uid": ""}
        return {**raw, "metadata": known | raw["metadata"]} if raw is not None else None


class AdmissionReview(_Sent):
    """A question."""

    request: Asked


class NotJudged(Exception):
    """A handler failed, which is no refusal. The API server then follows the webhook's `failurePolicy`."""


def make_answer_of_kopf(uid: str, said: Any) -> dict[str, Any]:
    """Return the answer to the question with this uid. Raises `NotJudged` if a handler failed."""
    response = said["response"]
    warnings = response.get("warnings", ())
    if response["allowed"]:
        return make_answer(uid, None, warnings)
    status = response["status"]
    if status["code"] != UNPROCESSABLE:
        raise NotJudged(status["message"])
    return make_answer(uid, status["message"], warnings)


def make_answer(uid: str, refusal: str | None, warnings: Iterable[str] = ()) -> dict[str, Any]:
    """Return the answer to the question with this uid. Without a `refusal` the request is allowed.

    Texts are shortened here, because the API server cuts warnings above 256 characters, and a large number of them."""
    said = [shorten(each, _WARNING_LIMIT) for each in warnings][:_WARNINGS_LIMIT]
    response: dict[str, Any] = {"uid": uid, "allowed": refusal is None}
    if refusal is not None:
        message = shorten(refusal, _MESSAGE_LIMIT)
        response["status"] = {"code": UNPROCESSABLE, "reason": "Invalid", "message": message}
    if said:
        response["warnings"] = said
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
