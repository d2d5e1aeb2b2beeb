"""Each kind of Kafka's requests is built in one module, so its version and its fields have one place. Each change of a
cluster is requested, and its answer read, in one module of the client."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[4]
HOUSES: Final = ("controller_core", "kontroller", "operator/controller_operator")
BUILDERS: Final = "controller_core/wire/requests"
SCHEMAS: Final = ("kio", "schema")

ELSEWHERE: Final = {
    "sasl_handshake": "controller_core/wire/connections/connecting.py",
    "sasl_authenticate": "controller_core/wire/connections/connecting.py",
    "alter_user_scram_credentials": "controller_core/client/users.py",
    "describe_user_scram_credentials": "controller_core/client/users.py",
}
"""Requests of a dialogue: only the module that holds it builds them, with the secrets that they carry."""
CLIENT: Final = "controller_core/client/"
CHANGES: Final = (
    "alter_partition_reassignments",
    "alter_user_scram_credentials",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "elect_leaders",
    "incremental_alter_configs",
    "update_features",
)
THROTTLES: Final = {
    "controller_core/client/reassigning/throttle_configs.py",
    "controller_core/client/reassigning/throttles.py",
}
"""They read and change configurations of several resources together."""
CONVERTED: Final = {
    "controller_core/admin/topics/delete_topics.py": "delete_topics",
    "controller_core/admin/update_features.py": "update_features",
}
"""Modules that build the newer form of a client's request, to read it. They send nothing."""


def list_modules() -> Iterator[tuple[str, str]]:
    """Yield the path and the source of each module."""
    for house in HOUSES:
        for path in sorted((ROOT / house).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text()


def find_built_apis(source: str) -> set[str]:
    """Return the APIs of which a module calls a class of a request, by kio's names, such as `create_topics`.

    The parts of a request count too. In kio they are only in the module `request` of a version."""
    if SCHEMAS[0] not in source:
        return set()
    tree = ast.parse(source)
    known = dict(pair for node in ast.walk(tree) for pair in read_imports(node))
    called = (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))
    found = set()
    for name in called:
        root, _, rest = name.partition(".")
        parts = ".".join(filter(None, (known.get(root, ""), rest))).split(".")
        is_of_schema = tuple(parts[:2]) == SCHEMAS and len(parts) > 4
        if is_of_schema and ("request" in parts[4:] or parts[-1].endswith("Request")):
            found.add(parts[2])
    return found


@cache
def find_asked_apis(source: str) -> set[str]:
    """Return the APIs whose answers a module asks a client for."""
    if SCHEMAS[0] not in source or ".ask" not in source:
        return set()
    tree = ast.parse(source)
    known = dict(pair for node in ast.walk(tree) for pair in read_imports(node))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    asked = (each for call in calls if ".ask" in ast.unparse(call.func) for each in call.args)
    parts = (known.get(ast.unparse(each), "").split(".") for each in asked)
    return {each[2] for each in parts if tuple(each[:2]) == SCHEMAS and each[-1].endswith("Response")}


def read_imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, each with its full name."""
    if isinstance(node, ast.ImportFrom):
        for each in node.names:
            yield each.asname or each.name, f"{node.module}.{each.name}"
    elif isinstance(node, ast.Import):
        for each in node.names:
            root = each.name.partition(".")[0]
            yield (each.asname, each.name) if each.asname else (root, root)


@cache
def collect_builders() -> dict[str, set[str]]:
    """Return the modules that build each API's requests, without `CONVERTED`. It reads all sources, so it runs once."""
    builders: dict[str, set[str]] = {}
    for module, source in list_modules():
        for api in find_built_apis(source) - {CONVERTED.get(module)}:
            builders.setdefault(api, set()).add(module)
    return builders


def test_the_modules_and_requests_are_found() -> None:
    built = collect_builders()
    assert {api: built.get(api) for api in ("create_topics", "fetch", "metadata")} == {
        "create_topics": {f"{BUILDERS}/topics.py"},
        "fetch": {f"{BUILDERS}/fetches.py"},
        "metadata": {f"{BUILDERS}/metadata.py"},
    }


def test_each_kind_of_request_is_built_in_one_module() -> None:
    assert {api: modules for api, modules in collect_builders().items() if len(modules) > 1} == {}, (
        f"build it in {BUILDERS}"
    )


def test_requests_are_built_in_the_package_of_builders() -> None:
    outside = {
        api: module
        for api, modules in collect_builders().items()
        for module in modules
        if not module.startswith(f"{BUILDERS}/")
    }
    assert outside == ELSEWHERE, f"build it in {BUILDERS}"


@pytest.mark.parametrize("api", CHANGES)
def test_each_change_is_requested_in_one_module_of_the_client(api: str) -> None:
    (module,) = {module for module, source in list_modules() if api in find_asked_apis(source)} - THROTTLES
    assert module.startswith(CLIENT)


@pytest.mark.parametrize("module", CONVERTED)
def test_a_module_that_converts_requests_is_no_needless_exception(module: str) -> None:
    assert CONVERTED[module] in find_built_apis((ROOT / module).read_text())


@pytest.mark.parametrize(
    "source",
    [
        "from kio.schema.fetch.v12 import FetchRequest\nFetchRequest()",
        "from kio.schema.fetch.v12.request import FetchRequest as Request\ndef f():\n    return Request(topics=())",
        "from kio.schema.fetch.v12.request import FetchTopic\nFetchTopic()",
        "from kio.schema.fetch import v12\nv12.FetchRequest()",
        "from kio.schema.fetch.v12 import request as told\ntold.FetchTopic()",
        "import kio.schema.fetch.v12\nkio.schema.fetch.v12.FetchRequest()",
        "import kio.schema.fetch.v12 as fetch\nfetch.FetchRequest()",
    ],
)
def test_a_request_is_seen_by_any_import(source: str) -> None:
    assert find_built_apis(source) == {"fetch"}


@pytest.mark.parametrize(
    "source",
    [
        "from kio.schema.fetch.v12 import FetchRequest\nconvert(message, FetchRequest)\nFetchRequest.__api_key__",
        "from kio.schema.fetch.v12.response import FetchResponse\nFetchResponse()",
        "from kio.schema.errors import ErrorCode\nErrorCode(1)",
        "from urllib.request import Request\nRequest('http://a')",
    ],
)
def test_nothing_else_is_taken_for_one(source: str) -> None:
    assert find_built_apis(source) == set()
