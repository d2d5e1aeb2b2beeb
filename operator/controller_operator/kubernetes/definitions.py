"""Checks that the installed CustomResourceDefinitions have all fields of this operator's release.

The API server silently drops fields that a definition does not name, from writes and from reads. With definitions of an
earlier release a move loses its `suspend` and its need for approval, and a status loses its records; any write makes
the loss permanent. Outdated definitions are common: Helm does not upgrade those in a chart's `crds/`, and a rollback of
a release also rolls back its definitions. So the operator neither acts on nor writes objects of a kind whose definition
lacks a field, until the definition is there. Definitions of a later release have all fields of this one.
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
    """The missing fields of the definitions, as of the last `look`."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._lacking: dict[str, tuple[str, ...]] = {}
        self._is_told = True

    async def look(self) -> set[str]:
        """Ask the API server. Return the kinds whose missing fields have changed.

        If it does not answer, for example without the right to ask, nothing counts as changed."""
        try:
            published = await self._api.schemas()
        except ApiError as error:
            if self._is_told:
                _log.warning("it cannot be told whether the definitions are those of this release", error=str(error))
            self._is_told = False
            return set()
        self._is_told = True
        before, self._lacking = self._lacking, dict(_find_missing_fields(published))
        for kind, fields in self._lacking.items():
            if before.get(kind) != fields:
                _log.error("nothing is done for objects of this kind", kind=kind, why=self.trouble_of(kind))
        return {kind for kind in {*before, *self._lacking} if before.get(kind) != self._lacking.get(kind)}

    def trouble_of(self, kind: str) -> str | None:
        """Return why nothing may be done for objects of a kind, and the change to make; None if no field is missing."""
        for needed in (kind, KafkaCluster.definition.kind):
            if fields := self._lacking.get(needed):
                return (
                    f"the definition of {needed} in this cluster is of an earlier release than this operator, and lacks "
                    f"{list_some(fields)}: apply the CustomResourceDefinitions of this release"
                )
        return None

    @property
    def trouble(self) -> str | None:
        """The trouble of the first kind with one; None if no field is missing."""
        return next((self.trouble_of(kind) for kind in sorted(self._lacking)), None)


def _find_missing_fields(published: Mapping[str, Schema]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for kind, wanted in _make_wanted_schemas().items():
        # A missing definition is reported when its objects are listed.
        if kind in published and (fields := tuple(_find_absent(wanted, published[kind], ""))):
            yield kind, fields


@cache
def _make_wanted_schemas() -> Mapping[str, Schema]:
    return {kind.definition.kind: _schema_of(custom_resource_definition(kind)) for kind in KINDS}


def _schema_of(definition: Schema) -> Schema:
    (version,) = definition["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return {"properties": {name: schema["properties"][name] for name in _SEEN_PARTS}}


def _find_absent(wanted: Schema, published: Schema, path: str) -> Iterator[str]:
    """Yield the outermost wanted fields that are not published."""
    # The API server keeps everything below such a field, so nothing can be missing.
    if published.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = published.get("properties", {})
    for name, inner in wanted.get("properties", {}).items():
        if name in known:
            yield from _find_absent(inner, known[name], f"{path}{name}.")
        else:
            yield f"{path}{name}"
    for nested in ("items", "additionalProperties"):
        if isinstance(wanted.get(nested), Mapping):
            found = published.get(nested)
            yield from _find_absent(wanted[nested], found if isinstance(found, Mapping) else {}, path)
