"""The `kontroller-broker` command.

Each command imports its dependencies when it runs, so that `--help` stays quick.
"""

import asyncio

import typer

from kontroller.cli import options
from kontroller.cli.endings import OneLine, failure, usage_error
from kontroller.cli.settings_options import take_settings
from replica_broker.cli import admin

main = typer.Typer(
    name="kontroller-broker",
    cls=OneLine,
    help="A reference broker in Python, for tests and study.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

main.add_typer(admin.commands, name="admin")


@main.command("run", cls=take_settings("replica_broker.process.settings:BrokerProcessSettings"))
def run(ctx: typer.Context, settings: options.SettingsFile = None) -> None:
    """Host replicas of a cluster's partitions under Kafka's controller or a Kontroller.

    The broker has no consumer groups, transactions, compaction or quotas: keep __consumer_offsets and
    __transaction_state on stock brokers. Every option can also be set as KONTROLLER_<OPTION> in the
    environment, or in the settings file.
    """
    # Imported here because other commands take less time to run than these imports.
    from controller_core.controller.controller import ZooKeeperGone
    from controller_core.controller.role.presence import IdInUse
    from controller_core.process.logging import configure_logging
    from controller_core.process.settings import InvalidSettings
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.session import ZkError
    from replica_broker.disk.disk import DiskError
    from replica_broker.log.errors import LogError
    from replica_broker.membership.features import IncompatibleFeatures
    from replica_broker.membership.registration import BrokerIdInUse
    from replica_broker.process.run import run_broker
    from replica_broker.process.run_v2 import run_v2_broker
    from replica_broker.process.settings import load_settings
    from replica_broker.v2.broker.broker import ClusterHasController

    try:
        loaded = load_settings(ctx.obj, settings)
        configure_logging(loaded.log_format, loaded.log_level)
        asyncio.run(run_v2_broker(loaded) if loaded.design == "v2" else run_broker(loaded))
    except (InvalidSettings, BrokerIdInUse, IdInUse, ClusterHasController) as error:
        raise usage_error(error) from error
    except (IncompatibleFeatures, ZooKeeperGone, ZkError, MalformedZnode, DiskError, LogError, OSError) as error:
        raise failure(error) from error
