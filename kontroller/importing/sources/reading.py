"""Reads the files of all known tools. The format of each document shows in its content."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kontroller.importing.declared import Declared
from kontroller.importing.declared_plans import DeclaredPlan
from kontroller.importing.documents import LeftOut
from kontroller.importing.sources import julie_ops, strimzi_rebalances, terraform, topicctl
from kontroller.importing.sources.kubernetes_objects import DIALECTS, is_being_deleted, read_object
from kontroller.importing.sources.loading import Fields, Misshapen, Problem, load_documents
from kontroller.importing.sources.reporting import read_or_report

_UNKNOWN: Final = "no known tool declares topics like this: kontroller import --help lists the formats"
_KAFKA_TOPIC: Final = "KafkaTopic"
_SHARED_CONFIG: Final = ("core.jikkou.io", "ConfigMap")
_OURS: Final = "kontroller.dev"


@dataclass(slots=True, kw_only=True)
class Reading:
    """The content of the files."""

    topics: list[Declared] = field(default_factory=list)
    plans: list[DeclaredPlan] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Parts that were not understood."""
    remarks: list[str] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    def add(self, result: Declared | DeclaredPlan | Problem) -> None:
        """Add a topic, a plan, or a part that was not understood."""
        if isinstance(result, Problem):
            self.problems.append(result)
        elif isinstance(result, Declared):
            self.topics.append(result)
        else:
            self.plans.append(result)
            if result.is_done:
                self.remarks.append(
                    f"{result.place}: {result.source} {result.name} is left out: it is carried out already"
                )


@dataclass(slots=True, kw_only=True)
class _Shared:
    """The parts to which topics of any file may refer, by name."""

    plans: dict[str, Any] = field(default_factory=dict)
    config_maps: dict[str, Fields] = field(default_factory=dict)


class _Found(NamedTuple):
    """An object of a file."""

    file: str
    fields: Fields

    @property
    def place(self) -> str:
        return f"{self.file}:{self.fields.line}" if self.fields.line else self.file

    @property
    def group(self) -> str:
        return str(self.fields.get("apiVersion")).partition("/")[0]

    @property
    def kind(self) -> str:
        return str(self.fields.get("kind"))


def read_files(files: Iterable[tuple[str, bytes]]) -> Reading:
    """Read the files, each given by its name and its content. An error in one part disturbs no other part."""
    reading = Reading()
    objects = [each for name, data in files for each in _load_objects(name, data, reading)]
    shared = _Shared()
    declaring = [each for each in objects if not _keep_shared(each, shared)]
    for each in declaring:
        try:
            for result in _read_declared(each, shared, reading):
                reading.add(result)
        except Misshapen as error:
            reading.add(Problem(each.place, str(error)))
    return reading


def _load_objects(file: str, data: bytes, reading: Reading) -> Iterator[_Found]:
    for document in load_documents(file, data):
        for each in _flatten(file, document):
            if isinstance(each, Fields):
                yield _Found(file, each)
            elif isinstance(each, Problem):
                reading.add(each)
            elif each is not None:
                reading.add(Problem(file, _UNKNOWN))


def _flatten(file: str, document: Any) -> Iterator[Any]:
    """Yield the objects of a document: itself, or its items if it is a list."""
    if isinstance(document, list):
        yield from document
        return
    is_list = isinstance(document, Fields) and isinstance(document.get("items"), list)
    if not is_list or not str(document.get("kind")).endswith("List"):
        yield document
        return
    for each in document["items"]:
        try:
            yield _inherit(each, document) if isinstance(each, Fields) and "kind" not in each else each
        except Misshapen as error:
            yield Problem(_Found(file, each).place, str(error))


def _inherit(item: Fields, whole: Fields) -> Fields:
    """Return an item of a typed list, such as a KafkaTopicList of Jikkou, with what the list says for all.

    Raises `Misshapen`."""
    metadata = item.get("metadata")
    common = whole.get("metadata")
    if isinstance(metadata, Fields) and isinstance(common, Fields):
        parts = {
            name: Fields({**common.get_fields(name), **metadata.get_fields(name)}, metadata.line)
            for name in ("labels", "annotations")
        }
        metadata = Fields({**metadata, **parts}, metadata.line)
    kind = str(whole["kind"]).removesuffix("List")
    return Fields({"apiVersion": whole.get("apiVersion"), "kind": kind, **item, "metadata": metadata}, item.line)


def _keep_shared(found: _Found, shared: _Shared) -> bool:
    """Keep what topics of any file may refer to. Return True if it is that."""
    fields = found.fields
    if julie_ops.is_plans(fields) and isinstance(fields["plans"], Fields):
        shared.plans.update(fields["plans"])
        return True
    metadata, data = fields.get("metadata"), fields.get("data")
    if (found.group, found.kind) != _SHARED_CONFIG or not isinstance(metadata, Fields):
        return False
    shared.config_maps[str(metadata.get("name"))] = data if isinstance(data, Fields) else Fields()
    return True


def _read_declared(found: _Found, shared: _Shared, reading: Reading) -> Iterator[Declared | DeclaredPlan | Problem]:
    fields, place = found.fields, found.place
    is_rebalance = (found.group, found.kind) == strimzi_rebalances.KIND
    if terraform.is_state(fields):
        yield from terraform.read_state(fields, found.file)
    elif julie_ops.is_topology(fields):
        reading.remarks.append(f"{place}: {julie_ops.NOTE}")
        yield from julie_ops.read_topology(fields, shared.plans, found.file)
    elif topicctl.is_topicctl(fields):
        if topicctl.is_topic(fields):
            yield read_or_report(place, fields, lambda: topicctl.read_topic(fields, place))
        else:
            reading.left_out["of topicctl that are no topics"] += 1
    elif "apiVersion" not in fields or "kind" not in fields:
        yield Problem(place, _UNKNOWN)
    elif not is_rebalance and (found.kind != _KAFKA_TOPIC or found.group == _OURS):
        reading.left_out[f"{found.kind} of {found.group}" if "." in found.group else found.kind] += 1
    elif found.group not in DIALECTS:
        yield Problem(place, f"{found.kind} of {found.group}: {_UNKNOWN}")
    elif is_being_deleted(fields, DIALECTS[found.group]):
        reading.left_out["being deleted"] += 1
    elif is_rebalance:
        yield read_or_report(place, fields, lambda: strimzi_rebalances.read_rebalance(fields, place))
    else:
        dialect = DIALECTS[found.group]
        yield read_or_report(place, fields, lambda: read_object(fields, dialect, place, shared.config_maps))
