"""AdmissionReview, version 1, as the API server sends it and wants it answered."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from controller_operator.kubernetes.object_store import KIND_CLASSES, Raw
from controller_operator.resources.common import API_VERSION as OUR_API_VERSION

API_VERSION: Final = "admission.k8s.io/v1"
_WARNING_LIMIT: Final = 250
_WARNINGS_LIMIT: Final = 10
_MESSAGE_LIMIT: Final = 2_000
_UNPROCESSABLE: Final = 422


def _ours(raw: Raw) -> Raw:
    is_ours = raw.get("apiVersion") == OUR_API_VERSION and str(raw.get("kind")) in KIND_CLASSES
    if not is_ours or not isinstance(raw.get("metadata"), dict):
        raise ValueError("not an object of one of our kinds")
    return raw


Ours = Annotated[Raw, AfterValidator(_ours)]
"""An object of one of our kinds. Whatever else is in it may be wrong."""


class _Sent(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class Asked(_Sent):
    """What somebody wants to do with an object."""

    uid: str = Field(min_length=1, max_length=253)
    """Of this question."""
    operation: str
    namespace: str = ""
    name: str = ""
    object: Ours
    old_object: Ours | None = None

    def named(self, raw: Raw) -> Raw:
        """An object with the name and the namespace that it may have only here."""
        known: Raw = {"namespace": self.namespace, "name": self.name, "uid": ""}
        return {**raw, "metadata": known | raw["metadata"]}


class AdmissionReview(_Sent):
    """A question."""

    request: Asked


def answer(uid: str, refusal: str | None, warnings: Iterable[str] = ()) -> dict[str, Any]:
    """The answer to the question with this uid; without a `refusal` it may be done.

    The API server cuts what it passes on to clients: warnings above 256 characters, and many of them."""
    said = [_cut(each, _WARNING_LIMIT) for each in warnings][:_WARNINGS_LIMIT]
    response: dict[str, Any] = {"uid": uid, "allowed": refusal is None}
    if refusal is not None:
        message = _cut(refusal, _MESSAGE_LIMIT)
        response["status"] = {"code": _UNPROCESSABLE, "reason": "Invalid", "message": message}
    if said:
        response["warnings"] = said
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
