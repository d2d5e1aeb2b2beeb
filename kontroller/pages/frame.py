"""The environment of the templates of a page, and its inline parts."""

import base64
import hashlib
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kontroller.pages.letters import visible


def make_environment(package: str) -> Environment:
    """Return an environment for the folder `templates` of a package.

    Every name is escaped. Templates find `style`, `script` and `script_digest`, which the content security policy names."""
    made = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        finalize=_make_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _read("script.js")
    made.globals.update(
        style=Markup(_read("style.css")),  # noqa: S704 -- a file of this package
        script=Markup(script),  # noqa: S704 -- a file of this package
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return made


@cache
def _read(name: str) -> str:
    return resources.files("kontroller.pages").joinpath(name).read_text(encoding="utf-8")


def _make_visible(value: object) -> object:
    """Return a value for the template. Invisible characters of a text are replaced."""
    return visible(value) if type(value) is str else value
