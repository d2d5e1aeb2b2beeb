"""Requests of all APIs and versions that the controller answers.

Each request that can be read can be written, and is then read as the same request.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from kio.schema.alter_partition.v2 import AlterPartitionRequest as AlterPartitionRequest2
from kio.schema.alter_partition.v3 import AlterPartitionRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.process.listening import ListenerAssembly
from controller_core.process.run import SERVED_APIS
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import FrameError, decode_request, encode_request, read_request_head
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import limits_of
from controller_core.wire.listener.owned_api import LocalApi, OwnedApi
from controller_core.zk.session import ZkSession
from tests.fuzz.messages import some_messages
from tests.fuzz.target import Target


async def _no_answer(*_: object) -> ResponsePayload:
    raise AssertionError("nothing is answered: requests are read")


def _list_served_versions() -> Mapping[int, Versions[Any]]:
    """Return the versions of all APIs. Only the assembly's table is used."""
    assembly = ListenerAssembly(cast(ZkSession, None), SERVED_APIS, lambda: None, _no_answer)
    apis = [api for api in assembly.make_apis("PLAINTEXT") if isinstance(api, OwnedApi | LocalApi)]
    return {api.key: api.versions for api in apis}


SERVED: Final = _list_served_versions()
ISRS: Final[Mapping[int, type[RequestPayload]]] = {2: AlterPartitionRequest2, 3: AlterPartitionRequest}


def _type_of(versions: Versions[Any], version: int) -> type[RequestPayload] | None:
    """Return kio's type of a request, or None. We read the requests that change ISRs without kio."""
    if versions.key == AlterPartitionRequest.__api_key__:
        return ISRS.get(version)
    return versions.request_type(version)


def examples() -> Iterator[bytes]:
    for versions in SERVED.values():
        for version in range(versions.min, versions.max + 1):
            known = _type_of(versions, version)
            for request in () if known is None else some_messages(known):
                yield encode_request(request, 7, "client")[4:]


def read(data: bytes) -> None:
    try:
        head = read_request_head(data)
        versions = SERVED.get(head.api_key)
        if versions is None or head.api_version not in versions:
            return
        limits = limits_of(head.api_key)
        request = versions.decode(data, head.api_version, most_items=limits.max_items)
    except (FrameError, Undecodable):
        return
    versions.lift(request)
    known = _type_of(versions, head.api_version)
    if known is not None:
        again = encode_request(decode_request(known, data), head.correlation_id, "client")[4:]
        assert versions.decode(again, head.api_version) == request


TARGET: Final = Target(name="requests", examples=examples, read=read)
