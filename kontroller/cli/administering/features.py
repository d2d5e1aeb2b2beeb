"""`kontroller features`: KIP-584's tool, with its flags, questions and JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kontroller.cli.administering.connection import Allowance, Cluster, Yes, confirm
from kontroller.cli.administering.output import Format, say
from kontroller.cli.endings import EXIT_FAILED, usage_error
from kontroller.cli.option_groups import add_command
from kontroller.screen import format_table

if TYPE_CHECKING:
    from kontroller import FeatureMetadata, FeatureUpdate

commands = typer.Typer(help="Finalized features: describe, update, disable.", no_args_is_help=True)

FeatureOutput = Annotated[Format, typer.Option("--output", "-o", help="json in the format of KIP-584, yaml, or table.")]
_UPGRADE: Final = "Please confirm before finalizing the upgrade of the following features:"
_DOWNGRADE: Final = "Please confirm before downgrading the following features:"
_DELETION: Final = "Please confirm deletion of the following features:"


@add_command(commands, "describe")
def describe(
    cluster: Cluster,
    controller: Annotated[bool, typer.Option("--controller", help="Ask the controller instead of any server.")] = False,
    output: FeatureOutput = Format.JSON,
) -> None:
    """Shows the finalized levels, and the levels that the answering server supports."""
    found = cluster.ask(
        lambda admin, timeout_ms: admin.describe_features(of_controller=controller, timeout_ms=timeout_ms)
    )
    _show(output, found)


@add_command(commands, "update")
def update(
    cluster: Cluster,
    feature_upgrade: Annotated[
        list[str] | None,
        typer.Option("--feature-upgrade", help="NAME:LEVEL to upgrade to. May be repeated.", show_default=False),
    ] = None,
    feature_force_downgrade: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-force-downgrade", help="NAME:LEVEL to downgrade to. May be repeated.", show_default=False
        ),
    ] = None,
    yes: Yes = False,
    output: FeatureOutput = Format.JSON,
) -> None:
    """Finalizes levels of features: all or none, if the controller supports that.

    Kontroller does, and Kafka's controller since 4.0 (UpdateFeatures 2). With other controllers all levels are
    validated first, but a concurrent change can still make some of them fail. Asks before upgrades and before
    downgrades."""
    from kontroller import AdminClient, UpdateType

    upgrades = _parse_updates(feature_upgrade, "--feature-upgrade", UpdateType.ADD_OR_UPDATE)
    downgrades = _parse_updates(
        feature_force_downgrade, "--feature-force-downgrade", UpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE
    )
    updates = [*upgrades, *downgrades]
    _require_sound(updates)
    time = Allowance(cluster.timeout_ms)
    present = cluster.ask(
        lambda admin, timeout_ms: admin.describe_features(of_controller=True, timeout_ms=timeout_ms), time
    )
    for title, changes in ((_UPGRADE, upgrades), (_DOWNGRADE, downgrades)):
        if changes:
            _require_agreed(title, [_change(each, present) for each in changes], yes=yes)

    async def work(admin: AdminClient, time: Allowance) -> "FeatureMetadata":
        if not yes:  # somebody has taken time to confirm it
            now = await admin.describe_features(of_controller=True, timeout_ms=time.require_time_ms())
            _require_as_confirmed(updates, present, now)
        return await admin.update_features(updates, timeout_ms=time.require_time_ms())

    _show(output, cluster.run(work, time))


@add_command(commands, "disable")
def disable(
    cluster: Cluster,
    features: Annotated[str, typer.Option("--features", help="Features to disable: NAME[,NAME...].")],
    yes: Yes = False,
    output: FeatureOutput = Format.JSON,
) -> None:
    """Removes finalized features, whatever the brokers support. Asks first."""
    from kontroller import FeatureUpdate, UpdateType

    names = [name.strip() for name in features.split(",")]
    _require_sound([FeatureUpdate(feature=name, level=0, type=UpdateType.DELETE) for name in names])
    _require_agreed(_DELETION, names, yes=yes)
    found = cluster.ask(lambda admin, timeout_ms: admin.delete_features(names, timeout_ms=timeout_ms))
    _show(output, found)


def _show(output: Format, found: "FeatureMetadata") -> None:
    """Print features in the JSON of KIP-584, including its indentation."""
    finalized: dict[str, Any] = {name: {"version": level} for name, level in sorted(found.finalized.items())}
    value = {
        "status": "OK",
        "supported_features": {
            name: {"minVersion": range_.min_version, "maxVersion": range_.max_version}
            for name, range_ in sorted(found.supported.items())
        },
        "finalized_features": {"epoch": found.epoch, **finalized},
        "host": found.answered_by.host,
        "port": found.answered_by.port,
    }
    supported = {name: f"{range_.min_version} to {range_.max_version}" for name, range_ in found.supported.items()}
    rows = [(name, found.finalized.get(name), supported.get(name)) for name in sorted({*supported, *finalized})]
    told = [f"epoch {'none' if found.epoch is None else found.epoch}, as {found.answered_by} says", ""]
    lines = format_table(("FEATURE", "FINALIZED", "SUPPORTED"), rows, most=None) or ["there are no features"]
    say(output, value, [*told, *lines], indent="\t")


def _require_sound(updates: Sequence["FeatureUpdate"]) -> None:
    """End the command if the updates are invalid, before the user is asked to confirm them."""
    from controller_core.client.features import require_sound
    from kontroller import InvalidArgument

    try:
        require_sound(updates)
    except InvalidArgument as error:
        raise usage_error(error) from error


def _require_agreed(title: str, lines: Sequence[str], *, yes: bool) -> None:
    """End the command if the user does not agree."""
    if not confirm(title, lines, yes=yes):
        typer.echo("nothing is changed", err=True)
        raise typer.Exit(EXIT_FAILED)
    typer.echo(err=True)


def _require_as_confirmed(
    updates: Sequence["FeatureUpdate"], present: "FeatureMetadata", now: "FeatureMetadata"
) -> None:
    """Raise an error if a level has changed since it was shown. The change could make a small downgrade a large one."""
    from kontroller import AdminError

    changed = [each for each in updates if present.finalized.get(each.feature) != now.finalized.get(each.feature)]
    if changed:
        lines = "; ".join(_change(each, now) for each in changed)
        raise AdminError(
            f"somebody else has changed levels since they were shown. The change would now be: {lines}; run the "
            f"command again"
        )


def _change(update: "FeatureUpdate", present: "FeatureMetadata") -> str:
    level = present.finalized.get(update.feature)
    existing = "none" if level is None else f"v{level}"
    return f"{update.feature} from {existing} (existing) to v{update.level} (new)"


def _parse_updates(given: list[str] | None, option: str, type_: Any) -> "list[FeatureUpdate]":
    from kontroller import FeatureUpdate

    updates = []
    for each in given or ():
        name, separator, level = each.rpartition(":")
        if not separator or not name or not level.isdecimal() or len(level) > 5:
            raise usage_error(ValueError(f"{option} {each!r} is not NAME:LEVEL, such as metadata:2"))
        updates.append(FeatureUpdate(feature=name, level=int(level), type=type_))
    return updates
