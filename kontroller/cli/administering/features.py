"""`kontroller features`: KIP-584's tool, with its flags, questions and JSON, and the commands of Kafka 4's tool."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kontroller.cli.administering.connection import Allowance, Cluster, Yes, confirm
from kontroller.cli.administering.output import Format, Output, say
from kontroller.cli.endings import EXIT_FAILED, failure, usage_error
from kontroller.cli.option_groups import add_command
from kontroller.screen import format_table

if TYPE_CHECKING:
    from kontroller import FeatureMetadata, FeatureUpdate

commands = typer.Typer(help="Finalized features: describe, upgrade, downgrade, disable.", no_args_is_help=True)

FeatureOutput = Annotated[Format, typer.Option("--output", "-o", help="json in the format of KIP-584, yaml, or table.")]
Release = Annotated[
    str | None,
    typer.Option(
        "--release-version",
        help="Release of Kafka whose levels all features get, such as 4.1 or 4.1-IV0 (see version-mapping).",
        show_default=False,
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option("--feature", help="NAME=LEVEL, such as metadata.version=26. May be repeated.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only validate; change nothing.")]
_UPGRADE: Final = "Please confirm before finalizing the upgrade of the following features:"
_DOWNGRADE: Final = "Please confirm before downgrading the following features:"
_LEVEL_DIGITS: Final = 5
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


@add_command(commands, "upgrade")
def upgrade(
    cluster: Cluster,
    release_version: Release = None,
    feature: Levels = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> None:
    """Upgrades features to the levels of a release of Kafka 4, or single features.

    Features that have their level already, or a higher one, stay. Asks first."""
    _change_levels(cluster, "upgrade", _read_levels(release_version, feature), dry_run=dry_run, yes=yes, output=output)


@add_command(commands, "downgrade")
def downgrade(
    cluster: Cluster,
    release_version: Release = None,
    feature: Levels = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> None:
    """Downgrades features to the levels of a release of Kafka 4, or single features; level 0 disables.

    Features that have their level already, or a lower one, stay. Kafka refuses a downgrade that would lose metadata.
    Asks first."""
    _change_levels(
        cluster, "downgrade", _read_levels(release_version, feature), dry_run=dry_run, yes=yes, output=output
    )


@add_command(commands, "version-mapping")
def version_mapping(release_version: Release = None, output: Output = Format.TABLE) -> None:
    """Shows the level of each feature in a release of Kafka; by default in the newest known one. Needs no cluster."""
    from controller_core.model.feature_levels.releases import METADATA_VERSION, NEWEST, UnknownLevel, map_release

    release = release_version or NEWEST
    try:
        levels = map_release(release)
    except UnknownLevel as error:
        raise usage_error(error) from error
    lines = [f"{name}={level}{f' ({release})' if name == METADATA_VERSION else ''}" for name, level in levels.items()]
    say(output, levels, lines)


@add_command(commands, "feature-dependencies")
def feature_dependencies(
    feature: Annotated[list[str], typer.Option("--feature", help="NAME=LEVEL to look up. May be repeated.")],
    output: Output = Format.TABLE,
) -> None:
    """Shows the levels of other features that a level depends on. Needs no cluster."""
    from controller_core.model.feature_levels.releases import UnknownLevel, describe_level, find_dependencies

    value, lines = {}, []
    for name, level in _parse_levels(feature).items():
        try:
            needed = find_dependencies(name, level)
            lines.append(f"{describe_level(name, level)} {'requires:' if needed else 'has no dependencies.'}")
            lines += [f"    {describe_level(*each)}" for each in needed.items()]
        except UnknownLevel as error:
            raise usage_error(error) from error
        value[f"{name}={level}"] = dict(needed)
    say(output, value, lines)


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


def _read_levels(release: str | None, given: list[str] | None) -> dict[str, int]:
    """Return the levels that a command asks for. Ends it if they make no sense."""
    from controller_core.model.feature_levels.releases import UnknownLevel, map_release

    if (release is None) == (not given):
        raise usage_error(ValueError("give --release-version, or --feature for each feature"))
    try:
        return map_release(release) if release is not None else _parse_levels(given or [])
    except UnknownLevel as error:
        raise usage_error(error) from error


def _parse_levels(given: list[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for each in given:
        name, separator, level = each.partition("=")
        name, level = name.strip(), level.strip()
        if not separator or not name or not level.isdecimal() or len(level) > _LEVEL_DIGITS:
            raise usage_error(ValueError(f"--feature {each!r} is not NAME=LEVEL, such as metadata.version=26"))
        if name in levels:
            raise usage_error(ValueError(f"Feature {name} was specified more than once."))
        levels[name] = int(level)
    return levels


def _change_levels(
    cluster: Cluster, verb: str, wanted: Mapping[str, int], *, dry_run: bool, yes: bool, output: Format
) -> None:
    """Finalize those of the levels that are an upgrade, or a downgrade. Kafka's tool sends all, and some are refused."""
    from kontroller import AdminClient

    time = Allowance(cluster.timeout_ms)
    present = cluster.ask(
        lambda admin, timeout_ms: admin.describe_features(of_controller=True, timeout_ms=timeout_ms), time
    )
    _require_kraft(wanted, present)
    updates = _find_updates(verb, wanted, present)
    if updates and not dry_run:
        title = _UPGRADE if verb == "upgrade" else _DOWNGRADE
        _require_agreed(title, [_change(each, present) for each in updates], yes=yes)

    async def work(admin: AdminClient, time: Allowance) -> None:
        if not yes and not dry_run:  # somebody has taken time to confirm it
            now = await admin.describe_features(of_controller=True, timeout_ms=time.require_time_ms())
            _require_as_confirmed(updates, present, now)
        await admin.update_features(updates, validate_only=dry_run, timeout_ms=time.require_time_ms())

    if updates:
        cluster.run(work, time)
    changed = {each.feature: each.level for each in updates}
    did = "can be" if dry_run else "was"
    lines = [f"{name} {did} {verb}d to {level}." for name, level in sorted(changed.items())]
    say(output, changed, lines or [f"every feature is at this level already, so there is nothing to {verb}"])


def _require_kraft(wanted: Mapping[str, int], present: "FeatureMetadata") -> None:
    """End the command if the levels are those of clusters without ZooKeeper, and the cluster has it."""
    from controller_core.model.feature_levels.releases import METADATA_VERSION

    if METADATA_VERSION in wanted and METADATA_VERSION not in present.supported:
        raise failure(
            RuntimeError(
                f"{present.answered_by} has no {METADATA_VERSION}: a cluster with ZooKeeper follows "
                "inter.broker.protocol.version in its brokers' files; set that, and restart the brokers"
            )
        )


def _find_updates(verb: str, wanted: Mapping[str, int], present: "FeatureMetadata") -> "list[FeatureUpdate]":
    from kontroller import FeatureUpdate, UpdateType

    updates = []
    for name, level in wanted.items():
        before = present.finalized.get(name, 0)
        if verb == "upgrade" and level > before:
            updates.append(FeatureUpdate(feature=name, level=level, type=UpdateType.ADD_OR_UPDATE))
        elif verb == "downgrade" and level < before:
            kind = UpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE if level else UpdateType.DELETE
            updates.append(FeatureUpdate(feature=name, level=level, type=kind))
    return updates


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
    from kontroller import AdminClient, InvalidArgument

    try:
        AdminClient.check_feature_updates(updates)
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
        if not separator or not name or not level.isdecimal() or len(level) > _LEVEL_DIGITS:
            raise usage_error(ValueError(f"{option} {each!r} is not NAME:LEVEL, such as metadata:2"))
        updates.append(FeatureUpdate(feature=name, level=int(level), type=type_))
    return updates
