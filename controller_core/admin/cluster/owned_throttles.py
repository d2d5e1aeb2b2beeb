"""Throttles that clients give to the controller, which ends them with their moves.

A client sets `kontroller.reassignment.throttle.OWNER` of the controller's own configuration, in the form of the
throttle's znode. The controller keeps it in `/kontroller/throttles`, as it does with the operator's: it writes the
configurations, also those of brokers that are down, and removes them when the moves have ended.
"""

from kio.schema.errors import ErrorCode

from controller_core.admin.refusals import ItemRefused, make_unwritten_refusal
from controller_core.controller.term.rights import Writes
from controller_core.controller.znodes.config_writes import open_throttles
from controller_core.model.throttles import THROTTLE_SETTING, Throttle
from controller_core.zk import codecs
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import TooLarge

_PREFIX = f"{THROTTLE_SETTING}."


def is_throttle(setting: str) -> bool:
    """Return True if a setting stands for a throttle."""
    return setting.startswith(_PREFIX) and len(setting) > len(_PREFIX)


def parse_throttle(setting: str, value: str) -> Throttle:
    """Return the throttle that a client asks for. Raises `ItemRefused`."""
    try:
        return codecs.decode_throttle(setting, value.encode())
    except MalformedZnode as error:
        raise ItemRefused(ErrorCode.invalid_config, f"{setting} is not a throttle: {error.reason}") from error


async def set_throttle(term: Writes, setting: str, throttle: Throttle | None) -> None:
    """Set the throttle of an owner, or end it. Raises `ItemRefused`."""
    owner, throttles = setting.removeprefix(_PREFIX), open_throttles(term)
    try:
        if throttle is None:
            await throttles.remove(owner)
        else:
            await throttles.set(owner, throttle.moves, throttle.bytes_per_second)
    except TooLarge as error:
        message = f"The throttle does not fit into a znode: {error}. Move fewer partitions at a time."
        raise ItemRefused(ErrorCode.invalid_config, message) from error
    except MalformedZnode as error:
        raise ItemRefused(ErrorCode.unknown_server_error, str(error)) from error
    except Contended as error:
        raise make_unwritten_refusal(error) from error
