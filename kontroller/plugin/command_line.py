"""The `kubectl-kontroller` command, which kubectl runs for `kubectl kontroller`.

Imports are lazy. A wrong command exits with 1, because 2 has another meaning here."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kontroller.value_names import NamedValues

if TYPE_CHECKING:
    from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects
    from controller_operator.kubernetes.leftovers import Leftover
    from kontroller.plugin.objects import Seen

commands = typer.Typer(
    name="kubectl kontroller",
    cls=NamedValues,
    help="Kafka clusters, topics, moves and elections of kontroller.dev, on one screen.\n\n"
    "Exits with 0: healthy, nothing to do, or done; 1: an error; 2: a cluster is degraded or not Ready, or with "
    "--fail-on-changes anything is unhealthy or changes; 3: something waits for a person.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


_WrongCommand: type[Exception] = typer.BadParameter.__bases__[0]
"""The UsageError of typer's click, which may be a copy of its own."""

_DURATION: Final = r"(\d+(?:\.\d+)?)([hms])"
_UNITS_S: Final = {"h": 3600, "m": 60, "s": 1}


class Output(StrEnum):
    """The format of the output."""

    TABLE = "table"
    JSON = "json"


Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace. Default: that of the context.")]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="All namespaces.")]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig. Default: the current one.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Format of the output.")]
FailOnChanges = Annotated[
    bool, typer.Option("--fail-on-changes", help="Exit with 2 if anything is unhealthy or changes.")
]
Object = Annotated[str, typer.Argument(metavar="KIND/NAME", help="An object, such as kt/orders or kpr/drain-4.")]
Objects = Annotated[list[str], typer.Argument(metavar="KIND/NAME", help="Objects, such as kt/orders.")]


@commands.callback()
def choose_defaults(chosen: typer.Context, namespace: Namespace = None, context: Context = None) -> None:
    """Accept where to look before the command as well, as kubectl does."""
    given = {name: value for name, value in (("namespace", namespace), ("context", context)) if value is not None}
    chosen.default_map = {chosen.invoked_subcommand or "": given}


@commands.command("status")
def status(
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    context: Context = None,
    output: OutputOption = Output.TABLE,
    fail_on_changes: FailOnChanges = False,
) -> None:
    """Shows each cluster's health, missing brokers, moves, drift, and the objects that wait for a person.

    Exits with 2 if a cluster is degraded or not Ready."""
    from controller_operator.resources import KINDS
    from kontroller.plugin.status import lines, summarize

    kinds = [kind.definition.kind for kind in KINDS]
    found, asked = _list_all(kinds, namespace, all_namespaces, context)
    view = summarize(found)
    _show(view.make_json(), lines(view, asked), output)
    raise typer.Exit(view.exit_code(fails_on_changes=fail_on_changes))


@commands.command("top")
def top(
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    context: Context = None,
    limit: Annotated[int, typer.Option("--limit", "-l", help="Partitions to show.", min=1)] = 20,
    output: OutputOption = Output.TABLE,
    fail_on_changes: FailOnChanges = False,
) -> None:
    """Shows the partitions that need attention most: without a leader, with missing replicas, moving.

    Reads only the statuses of KafkaTopics and PartitionReassignments."""
    from kontroller.plugin.exit_codes import exit_code
    from kontroller.plugin.top import find_ailing, lines

    listed, _ = _list_all(["KafkaTopic", "PartitionReassignment"], namespace, all_namespaces, context)
    found = find_ailing(listed)
    _show([each.make_json() for each in found[:limit]], lines(found, limit), output)
    raise typer.Exit(exit_code(waits=False, changes=bool(found), fails_on_changes=fail_on_changes))


@commands.command("plan")
def plan(
    name: Object,
    namespace: Namespace = None,
    context: Context = None,
    output: OutputOption = Output.TABLE,
    fail_on_changes: FailOnChanges = False,
) -> None:
    """Shows the operator's next steps for an object.

    To preview a change, pause the object, apply the change, and run this command."""
    from kontroller.plugin.changes import read
    from kontroller.plugin.objects import Named
    from kontroller.plugin.plan import find_next_steps, lines

    async def ask(api: "KubernetesObjects", where: str) -> "Seen":
        return await read(api, Named.parse(name), where)

    found = find_next_steps(_run_in_namespace(ask, namespace, context))
    _show(found.make_json(), lines(found), output)
    raise typer.Exit(found.exit_code(fails_on_changes=fail_on_changes))


@commands.command("pause")
def pause(names: Objects, namespace: Namespace = None, context: Context = None) -> None:
    """Pauses all work on objects, until they are resumed."""
    from kontroller.plugin import changes

    _change(changes.pause, names, namespace, context)


@commands.command("resume")
def resume(names: Objects, namespace: Namespace = None, context: Context = None) -> None:
    """Resumes the work on objects."""
    from kontroller.plugin import changes

    _change(changes.resume, names, namespace, context)


@commands.command("approve")
def approve(
    name: Object,
    plan_hash: Annotated[
        str | None, typer.Option("--plan", metavar="HASH", help="Hash of the plan to approve without a question.")
    ] = None,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Approves a move, an unclean election, or a topic's deletion or change that waits for approval. Shows its plan and
    asks, unless --plan is given."""
    from kontroller.plugin import changes
    from kontroller.plugin.objects import Named
    from kontroller.plugin.plan import find_next_steps, lines

    async def ask(api: "KubernetesObjects", where: str) -> "tuple[Seen, str]":
        seen = await changes.read(api, Named.parse(name), where)
        return seen, changes.find_plan_to_approve(seen)

    if plan_hash is None:
        seen, plan_hash = _run_in_namespace(ask, namespace, context)
        typer.echo("\n".join(lines(find_next_steps(seen))))
        typer.confirm(f"Approve plan {plan_hash}?", abort=True)
    agreed = plan_hash

    async def work(api: "KubernetesObjects", where: str) -> str:
        return await changes.approve(api, Named.parse(name), where, agreed)

    typer.echo(_run_in_namespace(work, namespace, context))


@commands.command("drain")
def drain(
    brokers: Annotated[list[int], typer.Argument(metavar="BROKER", help="Ids of the brokers.", min=0)],
    cluster: Annotated[
        str | None, typer.Option(help="KafkaCluster of the brokers. Default: the only one in the namespace.")
    ] = None,
    throttle: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="Bytes per second that each broker may send and receive for the move. Default: no limit.",
            min=1,
        ),
    ] = None,
    at_a_time: Annotated[
        int | None, typer.Option(help="Partitions that move at the same time. Default: all.", min=1)
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the PartitionReassignment. Default: drain-BROKER.")] = None,
    needs_approval: Annotated[
        bool, typer.Option("--needs-approval", help="Let the move wait until somebody approves its plan.")
    ] = False,
    is_agreed: Annotated[bool, typer.Option("--yes", "-y", help="Start the move without a question.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the moves, and start none.")] = False,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Time to wait for the plan, such as 30s or 1m30s.")
    ] = "1m",
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Empties brokers with the fewest moves. Shows the moves and asks before it starts them."""
    from kontroller.plugin import draining
    from kontroller.plugin.plan import find_next_steps, lines

    timeout_s = parse_duration(timeout, "--timeout")
    wanted = draining.Drain(
        brokers=brokers,
        cluster=cluster,
        name=name,
        bytes_per_second=throttle,
        at_a_time=at_a_time,
        needs_approval=needs_approval,
    )

    async def ask(api: "KubernetesObjects", where: str) -> "Seen":
        return await draining.create_with_plan(api, wanted, where, timeout_s)

    made = _run_in_namespace(ask, namespace, context)
    plan = find_next_steps(made)
    typer.echo("\n".join(lines(plan)))
    ends = draining.take_away
    try:
        if plan.steps and not dry_run and (is_agreed or typer.confirm("Move them?", abort=True)):
            ends = draining.let_go
    finally:
        typer.echo(_run_in_namespace(lambda api, _: ends(api, made), namespace, context))


@commands.command("cancel")
def cancel(names: Objects, namespace: Namespace = None, context: Context = None) -> None:
    """Cancels moves and elections by deleting their objects. Partitions that still move go back."""
    from kontroller.plugin import changes

    _change(changes.cancel, names, namespace, context)


@commands.command("leftovers")
def leftovers(
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Namespace of the operator. Default: that of the context."),
    ] = None,
    all_namespaces: AllNamespaces = False,
    context: Context = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Shows what deleted objects have left in the clusters: topics that stay, moves and limits that go on. Newest
    first.

    The operator keeps the last 100 leftovers in a ConfigMap beside it, even if their namespaces are gone."""
    from dataclasses import asdict

    from kontroller.plugin.leftovers import lines

    async def ask(api: "KubernetesObjects", where: str) -> "tuple[list[Leftover], str | None]":
        asked = None if all_namespaces else where
        return await api.leftovers(asked), asked

    found, asked = _run_in_namespace(ask, namespace, context)
    _show([asdict(each) for each in found], lines(found, asked), output)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, with the plugin's own exit codes."""
    from kontroller.plugin.exit_codes import ExitCode

    try:
        code = commands(args=arguments, prog_name="kubectl kontroller", standalone_mode=False)
    except _WrongCommand as error:
        error.show()  # type: ignore[attr-defined]  # it is a UsageError
        code = ExitCode.ERROR
    except typer.Abort:
        code = ExitCode.ERROR
    sys.exit(int(code or 0))


def parse_duration(text: str, option: str) -> float:
    """Return the seconds of a duration that is written as for kubectl. Ends the command if it is none, or is not above
    0."""
    parts = re.findall(_DURATION, text) if re.fullmatch(f"({_DURATION})+", text) else ()
    total_s = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    if total_s <= 0:
        raise typer.BadParameter(f"{text!r} is no duration above 0: give one such as 30s or 1m30s", param_hint=option)
    return total_s


def _change(
    change: Callable[..., Awaitable[str]], names: list[str], namespace: str | None, context: str | None
) -> None:
    """Apply a change to each object, and print the results. If one of the names is malformed, nothing is changed."""
    from kontroller.plugin.objects import Named

    async def work(api: "KubernetesObjects", where: str) -> None:
        for named in [Named.parse(name) for name in names]:
            typer.echo(await change(api, named, where))

    _run_in_namespace(work, namespace, context)


def _list_all(
    kinds: Sequence[str], namespace: str | None, everywhere: bool, context: str | None
) -> "tuple[list[Seen], str | None]":
    """Return the objects of some kinds, and the namespace that was asked for; None for all."""
    from kontroller.plugin.objects import list_seen

    async def ask(api: "KubernetesObjects", where: str) -> "tuple[list[Seen], str | None]":
        asked = None if everywhere else where
        return [each for kind in kinds for each in await list_seen(api, kind, asked)], asked

    found: tuple[list[Seen], str | None] = _run_in_namespace(ask, namespace, context)
    return found


def _run_in_namespace(
    work: Callable[["KubernetesObjects", str], Awaitable[Any]], namespace: str | None, context: str | None
) -> Any:
    """Return the result of work in the selected namespace. An error ends the command in one line."""
    from controller_operator.kubernetes.api_server import NoKubernetes, current_namespace, kubernetes_objects
    from controller_operator.kubernetes.object_api import ApiError
    from kontroller.plugin.changes import NotDone
    from kontroller.plugin.exit_codes import ExitCode
    from kontroller.plugin.objects import NoDefinitions, NoSuchKind

    async def run() -> Any:
        async with kubernetes_objects(context) as api:
            return await work(api, namespace or current_namespace(context))

    try:
        return asyncio.run(run())
    except (NoKubernetes, NoDefinitions, NoSuchKind, NotDone, ApiError) as error:
        typer.echo(f"kubectl kontroller: {error}", err=True)
        raise typer.Exit(ExitCode.ERROR) from error


def _show(answer: object, lines: Sequence[str], output: Output) -> None:
    typer.echo(json.dumps(answer, indent=2) if output is Output.JSON else "\n".join(lines))


if __name__ == "__main__":
    main()
