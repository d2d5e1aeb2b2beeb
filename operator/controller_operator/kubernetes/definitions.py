"""Whether the API server keeps all of an object that this operator writes and reads.

It drops what a definition does not name, from what is written and from what is read, without a word. With the definitions
of an earlier release a move has no `suspend` and needs no approval for whoever reads it, and a status loses the records
that a plan goes on from; any write makes the loss last. Definitions are easily left behind: Helm does not upgrade those in
a chart's `crds/`, and who rolls a release back rolls its definitions back as well. So for a kind whose definition lacks a
field that this operator knows, nothing is done and nothing written until the definition is there. Those of a later release
have all fields of this one.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import structlog

from controller_core.model.wording import list_some
from controller_operator.kubernetes.object_api import ApiError, ObjectApi
from controller_operator.resources import KINDS, KafkaCluster
from controller_operator.resources.crds import custom_resource_definition

_SEEN_PARTS: Final = ("spec", "status")
_log = structlog.get_logger(__name__)

Schema = Mapping[str, Any]


class Definitions:
    """What is lacking of the definitions, as of the last `look`."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._lacking: dict[str, tuple[str, ...]] = {}
        self._is_told = True

    async def look(self) -> set[str]:
        """Asks the API server; returns the kinds of which something else is lacking than before.

        Where it does not tell, as without the right to ask, nothing is known to have changed."""
        try:
            published = await self._api.schemas()
        except ApiError as error:
            if self._is_told:
                _log.warning("it cannot be told whether the definitions are those of this release", error=str(error))
            self._is_told = False
            return set()
        self._is_told = True
        before, self._lacking = self._lacking, dict(_lacks(published))
        for kind, fields in self._lacking.items():
            if before.get(kind) != fields:
                _log.error("nothing is done for objects of this kind", kind=kind, why=self.trouble_of(kind))
        return {kind for kind in {*before, *self._lacking} if before.get(kind) != self._lacking.get(kind)}

    def trouble_of(self, kind: str) -> str | None:
        """Why nothing may be done for objects of a kind, and what to change; None where all of it is kept."""
        for needed in (kind, KafkaCluster.definition.kind):
            if fields := self._lacking.get(needed):
                return (
                    f"the definition of {needed} in this cluster is of an earlier release than this operator, and lacks "
                    f"{list_some(fields)}: apply the CustomResourceDefinitions of this release"
                )
        return None

    @property
    def trouble(self) -> str | None:
        """The same of all kinds."""
        return next((self.trouble_of(kind) for kind in sorted(self._lacking)), None)


def _lacks(published: Mapping[str, Schema]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for kind, wanted in _wanted().items():
        # What is not there at all is said where its objects are listed.
        if kind in published and (fields := tuple(_absent(wanted, published[kind], ""))):
            yield kind, fields


@cache
def _wanted() -> Mapping[str, Schema]:
    return {kind.definition.kind: _schema_of(custom_resource_definition(kind)) for kind in KINDS}


def _schema_of(definition: Schema) -> Schema:
    (version,) = definition["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return {"properties": {name: schema["properties"][name] for name in _SEEN_PARTS}}


def _absent(wanted: Schema, published: Schema, path: str) -> Iterator[str]:
    """The fields that the one names and the other does not, the outermost of each."""
    if published.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = published.get("properties", {})
    for name, inner in wanted.get("properties", {}).items():
        if name in known:
            yield from _absent(inner, known[name], f"{path}{name}.")
        else:
            yield f"{path}{name}"
    for nested in ("items", "additionalProperties"):
        if isinstance(wanted.get(nested), Mapping):
            found = published.get(nested)
            yield from _absent(wanted[nested], found if isinstance(found, Mapping) else {}, path)
