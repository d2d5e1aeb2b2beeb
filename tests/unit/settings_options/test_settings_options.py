"""Each setting of a process is an option of its command, as its model describes it."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from controller_core.process.http_access.settings import HttpSettings
from controller_core.process.recording.settings import RecorderProcessSettings
from controller_core.process.settings import ControllerProcessSettings
from controller_operator.settings import OperatorSettings
from kontroller.command_line import main
from kontroller.history.serving.settings import ServeSettings
from kontroller.history.watching.settings import WatchSettings
from replica_broker.cli.command_line import main as broker
from replica_broker.process.settings import BrokerProcessSettings

COMMANDS: Final[dict[str, tuple[typer.Typer, tuple[str, ...], Any]]] = {
    "controller": (main, ("controller", "run"), ControllerProcessSettings),
    "recorder": (main, ("record",), RecorderProcessSettings),
    "operator": (main, ("operator", "run"), OperatorSettings),
    "watch": (main, ("history", "watch"), WatchSettings),
    "serve": (main, ("history", "serve"), ServeSettings),
    "broker": (broker, ("run",), BrokerProcessSettings),
}


def find_command(application: typer.Typer, path: tuple[str, ...]) -> Any:
    command: Any = typer.main.get_command(application)
    for word in path:
        command = command.commands[word]
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_each_setting_has_an_option_with_its_description(name: str) -> None:
    application, path, model = COMMANDS[name]
    options = {option.name: option for option in find_command(application, path).params}
    assert model.model_fields.keys() <= options.keys()
    assert [field for field, told in model.model_fields.items() if not told.description] == []
    assert all(options[field].help.startswith(told.description) for field, told in model.model_fields.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_each_process_takes_the_options_of_the_http_port(name: str) -> None:
    application, path, _ = COMMANDS[name]
    assert HttpSettings.model_fields.keys() <= {option.name for option in find_command(application, path).params}


def find_option(name: str, setting: str) -> Any:
    application, path, _ = COMMANDS[name]
    return next(option for option in find_command(application, path).params if option.name == setting)


def test_a_list_may_be_repeated_and_a_default_is_named() -> None:
    assert find_option("controller", "listen").multiple
    assert find_option("controller", "listen").help.endswith("May be repeated.")
    assert find_option("controller", "hot_standby").help.endswith("Default: on.")
    assert find_option("watch", "silent_after_seconds").help.endswith("Default: 30.")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_has_the_name_of_its_setting(name: str) -> None:
    application, path, model = COMMANDS[name]
    options = {option.name: option.opts for option in find_command(application, path).params}
    assert all(options[field] == [f"--{field.replace('_', '-')}"] for field in model.model_fields)


def test_a_variable_has_several_values_after_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KONTROLLER_NAMESPACE", "kafka, shop")
    monkeypatch.setenv("KONTROLLER_PROPERTIES", "/a,/b")
    settings = OperatorSettings()
    assert settings.namespace == ("kafka", "shop")
    assert settings.properties == (Path("/a"), Path("/b"))


def test_the_text_none_switches_a_setting_off() -> None:
    assert find_option("broker", "flush_interval_ms").type_descriptor.annotation is str


def test_other_commands_do_not_import_the_models() -> None:
    script = (
        "import sys, typer; from kontroller.command_line import main; typer.main.get_command(main); "
        "print(sorted(sys.modules.keys() & {'pydantic', 'pydantic_settings', 'controller_core.process.settings'}))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
