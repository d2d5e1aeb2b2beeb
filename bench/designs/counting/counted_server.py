"""A server of ours that counts its requests.

    python -m bench.designs.counting.counted_server COUNTS ARGUMENTS...

This is `kontroller-broker` with the arguments after `broker`, or `kontroller` with all arguments, whose listeners count
each complete request by its API (`message_counts`), and then handle it as usual.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kio.schema.errors import ErrorCode

from bench.designs.counting.message_counts import MessageCounts
from controller_core.model.authorization.principal import NOBODY_IN_PARTICULAR, Caller
from controller_core.wire.codecs.frames import RequestHead
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.listener.listener import Acceptor, Api, Listener
from controller_core.wire.listener.owned_api import BrokerQuestion, Pending, Throttled
from kontroller.command_line import main as kontroller
from replica_broker.cli.command_line import main as kontroller_broker


@dataclass(frozen=True, slots=True)
class CountedApi:
    """An `Api` whose requests are counted."""

    api: Api
    counts: MessageCounts

    @property
    def key(self) -> int:
        return self.api.key

    @property
    def limits(self) -> RequestLimits:
        """See `Api.limits`."""
        return self.api.limits

    @property
    def may_wait(self) -> bool:
        """See `Api.may_wait`."""
        return self.api.may_wait

    async def respond(
        self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR
    ) -> bytes | Throttled | BrokerQuestion | Pending[bytes | Throttled]:
        """See `Api.respond`."""
        self.counts.count(self.key)
        return await self.api.respond(head, content, caller)

    async def make_refusal(self, head: RequestHead, content: bytes | None, error_code: ErrorCode) -> bytes | None:
        """See `Api.make_refusal`."""
        return await self.api.make_refusal(head, content, error_code)


def main() -> None:
    """Run a counted server, as the module describes."""
    counts = MessageCounts(Path(sys.argv[1]))
    begin = Listener.__init__

    def begin_counting(listener: Listener, acceptors: Iterable[Acceptor], **further: Any) -> None:
        counted = [replace(acceptor, apis=[CountedApi(api, counts) for api in acceptor.apis]) for acceptor in acceptors]
        begin(listener, counted, **further)

    with patch.object(Listener, "__init__", begin_counting):
        if sys.argv[2] == "broker":
            kontroller_broker(sys.argv[3:], prog_name="kontroller-broker")
        else:
            kontroller(sys.argv[2:], prog_name="kontroller")


if __name__ == "__main__":
    main()
