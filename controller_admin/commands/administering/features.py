"""`kontroller features`: KIP-584's tool, with its flags, its questions and its JSON."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from controller_admin.commands.administering.connection import Config, Server, TimeoutMs, Yes, confirmed, run
from controller_admin.commands.endings import EXIT_FAILED, usage_error

if TYPE_CHECKING:
    from controller_admin.client.features import FeatureMetadata, FeatureUpdate

commands = typer.Typer(help="Features that the cluster finalizes: describe, update, disable.", no_args_is_help=True)

_UPGRADE: Final = "Please confirm before finalizing the upgrade of the following features:"
_DOWNGRADE: Final = "Please confirm before downgrading the following features:"
_DELETION: Final = "Please confirm deletion of the following features:"


@commands.command("describe")
def describe(
    server: Server = None,
    controller: Annotated[bool, typer.Option("--controller", help="Asks the controller, for debugging.")] = False,
    command_config: Config = None,
    timeout_ms: TimeoutMs = None,
) -> None:
    """Shows what is finalized, and what the server that answers supports."""
    found = run(
        server,
        command_config,
        lambda admin: admin.describe_features(of_controller=controller, timeout_ms=timeout_ms),
    )
    typer.echo(as_json(found))


@commands.command("update")
def update(
    server: Server = None,
    feature_upgrade: Annotated[
        list[str] | None,
        typer.Option("--feature-upgrade", help="NAME:LEVEL; may be given again.", show_default=False),
    ] = None,
    feature_force_downgrade: Annotated[
        list[str] | None,
        typer.Option("--feature-force-downgrade", help="NAME:LEVEL; may be given again.", show_default=False),
    ] = None,
    yes: Yes = False,
    command_config: Config = None,
    timeout_ms: TimeoutMs = 60_000,
) -> None:
    """Finalizes levels of features: all of them or none, where the controller offers that.

    Ours does, and Kafka's since 4.0 (UpdateFeatures 2). Else all are validated first, and a change that comes between can
    have some refused. Asks before it upgrades, and before it downgrades."""
    from controller_admin.client.admin_client import AdminClient
    from controller_admin.client.errors import InvalidArgument
    from controller_admin.client.features import UpdateType

    upgrades = _parsed(feature_upgrade, "--feature-upgrade", UpdateType.ADD_OR_UPDATE)
    downgrades = _parsed(feature_force_downgrade, "--feature-force-downgrade", UpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE)
    if not upgrades and not downgrades:
        raise usage_error(InvalidArgument("no feature is named: give --feature-upgrade NAME:LEVEL"))

    async def work(admin: AdminClient) -> "FeatureMetadata | None":
        present = await admin.describe_features(of_controller=True, timeout_ms=timeout_ms)
        for title, updates in ((_UPGRADE, upgrades), (_DOWNGRADE, downgrades)):
            if updates and not _agreed(title, [_change(each, present) for each in updates], yes=yes):
                return None
        return await admin.update_features([*upgrades, *downgrades], timeout_ms=timeout_ms)

    _end(run(server, command_config, work))


@commands.command("disable")
def disable(
    features: Annotated[str, typer.Option("--features", help="NAME[,NAME...]")],
    server: Server = None,
    yes: Yes = False,
    command_config: Config = None,
    timeout_ms: TimeoutMs = 60_000,
) -> None:
    """Has features finalized no more, whatever brokers support. Asks before it does."""
    from controller_admin.client.admin_client import AdminClient

    names = [name.strip() for name in features.split(",")]

    async def work(admin: AdminClient) -> "FeatureMetadata | None":
        if not _agreed(_DELETION, names, yes=yes):
            return None
        return await admin.delete_features(names, timeout_ms=timeout_ms)

    _end(run(server, command_config, work))


def as_json(found: "FeatureMetadata") -> str:
    """The specification's JSON."""
    finalized: dict[str, Any] = {name: {"version": level} for name, level in sorted(found.finalized.items())}
    said = {
        "status": "OK",
        "supported_features": {
            name: {"minVersion": range_.min_version, "maxVersion": range_.max_version}
            for name, range_ in sorted(found.supported.items())
        },
        "finalized_features": {"epoch": found.epoch, **finalized},
        "host": found.answered_by.host,
        "port": found.answered_by.port,
    }
    return json.dumps(said, indent="\t")


def _agreed(title: str, lines: Sequence[str], *, yes: bool) -> bool:
    agreed = confirmed(title, lines, yes=yes)
    typer.echo()
    return agreed


def _change(update: "FeatureUpdate", present: "FeatureMetadata") -> str:
    level = present.finalized.get(update.feature)
    existing = "none" if level is None else f"v{level}"
    return f"{update.feature} from {existing} (existing) to v{update.level} (new)"


def _end(found: "FeatureMetadata | None") -> None:
    if found is None:
        typer.echo("nothing is changed")
        raise typer.Exit(EXIT_FAILED)
    typer.echo(as_json(found))


def _parsed(given: list[str] | None, option: str, type_: Any) -> "list[FeatureUpdate]":
    from controller_admin.client.features import FeatureUpdate

    updates = []
    for each in given or ():
        name, separator, level = each.rpartition(":")
        if not separator or not name or not level.isdecimal() or len(level) > 5:
            raise usage_error(ValueError(f"{option} {each!r} is no NAME:LEVEL, such as metadata:2"))
        updates.append(FeatureUpdate(feature=name, level=int(level), type=type_))
    return updates
