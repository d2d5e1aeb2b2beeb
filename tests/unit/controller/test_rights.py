"""Signatures name no more rights than their functions need. mypy makes sure that they name no fewer."""

import ast
import importlib
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple, get_origin, get_type_hints

import controller_core
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Reads, Remembers, Sends, Writes
from controller_core.controller.term.term import Term

ROOT: Final = Path(controller_core.__path__[0]).parent
MOST_WITH_ALL_RIGHTS: Final = 98
"""The functions that take the whole `Term`. This may only fall."""
CALLED_WITH_A_TERM: Final = {
    "alter_partition.may_be_let_in",
    "requested.is_done",
    "requested.find_not_live",
    "requested.explain_message_loss",
}
"""Functions that only read the cluster state, but are called from `admin`, or by the table of APIs, with a term."""

Rights = frozenset[type]
INCLUDED: Final[dict[type, Rights]] = {
    Reads: frozenset(),
    Remembers: frozenset({Remembers}),
    Writes: frozenset({Remembers, Writes}),
    Sends: frozenset({Remembers, Sends}),
    Term: frozenset({Remembers, Writes, Sends}),
}
"""The rights beside reading that each type includes, from the narrowest type to the widest."""
BY_NAME: Final = {right.__name__: right for right in INCLUDED}
LOCAL_NAME: Final = re.compile(r"^ *(\w+)(?:, \w+)* = \(?(term\.state[a-z_.]*)(?:,|$)", re.MULTILINE)
"""A local name for a part of the cluster state, such as `running = term.state.reassignments`."""
MORE_THAN_STATE: Final = re.compile(r"\bterm\b(?!\.state\b|: )")


class Function(NamedTuple):
    """A function that takes a term."""

    name: str
    takes: type
    needs: type
    uses_state_only: bool


def find_functions() -> list[Function]:
    found = []
    for path in sorted((ROOT / "controller_core/controller").rglob("*.py")):
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for parameter in (*node.args.args, *node.args.kwonlyargs):
                    takes = BY_NAME.get(ast.unparse(parameter.annotation)) if parameter.annotation else None
                    if parameter.arg == "term" and takes is not None:
                        state_only = MORE_THAN_STATE.search(ast.unparse(node)) is None
                        found.append(
                            Function(f"{path.stem}.{node.name}", takes, find_narrowest(module, node), state_only)
                        )
    return found


def find_narrowest(module: ModuleType, function: ast.AST) -> type:
    """Return the narrowest type of a term that allows everything a function does with it."""
    names = {"term": "term", **dict(LOCAL_NAME.findall(ast.unparse(function)))}
    parents = {child: parent for parent in ast.walk(function) for child in ast.iter_child_nodes(parent)}
    needed: Rights = frozenset()
    for use in ast.walk(function):
        if isinstance(use, ast.Name) and isinstance(use.ctx, ast.Load) and use.id in names:
            members, above = names[use.id].split(".")[1:], parents[use]
            while isinstance(above, ast.Attribute):
                members.append(above.attr)
                above = parents[above]
            if members[:1] == ["state"]:
                is_indexed = isinstance(above, ast.Subscript)
                needed |= find_rights_in_state([*members[1:], "__getitem__"] if is_indexed else members[1:])
            elif members:
                needed |= next(included for right, included in INCLUDED.items() if members[0] in dir(right))
            else:
                needed |= find_rights_of_callee(module, above, use)
    return next(right for right, included in INCLUDED.items() if included == needed)


def find_rights_in_state(members: list[str]) -> Rights:
    """Return the rights that a use of the cluster state needs: of `term.state.x.y`, the members are x and y."""
    kind: type = ReadOnlyState
    for member in members:
        if member not in dir(kind):
            return INCLUDED[Remembers]
        found = vars(kind).get(member)
        if not isinstance(found, property):
            break
        hint = get_type_hints(found.fget)["return"]
        kind = get_origin(hint) or hint
    return INCLUDED[Reads]


def find_rights_of_callee(module: ModuleType, call: ast.AST, term: ast.Name) -> Rights:
    """Return the rights of the function to which a term is passed; all if that is known at run time only."""
    if isinstance(call, ast.Call) and term in call.args:
        within, _, name = ast.unparse(call.func).rpartition(".")
        callee = getattr(vars(module).get(within) if within else module, name, None)
        hints = list(get_type_hints(callee).values()) if hasattr(callee, "__annotations__") else []
        if hints:
            return INCLUDED.get(hints[call.args.index(term)], INCLUDED[Term])
    return INCLUDED[Term]


FUNCTIONS: Final = find_functions()


def test_a_signature_names_no_more_rights_than_its_function_needs() -> None:
    wide = {each.name: each.needs.__name__ for each in FUNCTIONS if INCLUDED[each.takes] > INCLUDED[each.needs]}
    assert wide == {}, "name the narrower right"


def test_a_function_that_only_reads_the_cluster_state_takes_the_state() -> None:
    assert {each.name for each in FUNCTIONS if each.uses_state_only and each.takes is Reads} == CALLED_WITH_A_TERM


def test_few_functions_have_all_rights() -> None:
    counted = Counter(each.takes for each in FUNCTIONS)
    assert counted.keys() == INCLUDED.keys(), "each right has its functions"
    assert counted[Term] <= MOST_WITH_ALL_RIGHTS
