"""The APIs that brokers call at their controller, and the operations that answer."""

from typing import Final

from controller_core.controller.operations import alter_partition, controlled_shutdown, producer_ids
from controller_core.controller.serving.served_api import AnyServedApi, ServedApi
from controller_core.wire.codecs import older_isr_changes
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import (
    AllocateProducerIdsRequest,
    ControlledShutdownRequest,
)

BROKER_APIS: Final[tuple[AnyServedApi, ...]] = (
    ServedApi(
        versions=older_isr_changes.VERSIONS,
        answer=alter_partition.on_alter_partition,
        refuse=lambda _, error_code: alter_partition.make_refusal(error_code),
        may_be_let_in=alter_partition.may_be_let_in,
    ),
    ServedApi(
        versions=Versions(ControlledShutdownRequest),
        answer=controlled_shutdown.on_controlled_shutdown,
        refuse=lambda _, error_code: controlled_shutdown.refuse(error_code),
    ),
    ServedApi(
        versions=Versions(AllocateProducerIdsRequest),
        answer=producer_ids.on_allocate_producer_ids,
        refuse=lambda _, error_code: producer_ids.make_refusal(error_code),
    ),
)
