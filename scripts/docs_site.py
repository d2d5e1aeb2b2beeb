"""The hook of mkdocs that lets pages link to files outside of docs/.

A page such as docs/drain.md links to `../examples/topics.yaml`, which a reader of the repository can open. In the site such
a link opens a copy of that file; a link to a folder loses its target and keeps its words.
"""

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT: Final = Path(__file__).parents[1]
_LINK: Final = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<target>\.\./[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
_FOLDER: Final = "files"
"""The folder of the site for the copies."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a copy of each file outside of docs/ to which a page links."""
    for page in [file for file in files if file.is_documentation_page()]:
        for link in _LINK.finditer(page.content_string):
            source = _find_source(page.src_uri, link["target"])
            copy = _name_copy(source)
            if (_ROOT / source).is_file() and copy not in files.src_uris:
                files.append(File.generated(config, copy, content=(_ROOT / source).read_bytes()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point each such link to the copy."""

    def replace(link: re.Match[str]) -> str:
        source = _find_source(page.file.src_uri, link["target"])
        if not (_ROOT / source).is_file():
            return link["words"]
        copy = posixpath.relpath(_name_copy(source), posixpath.dirname(page.file.src_uri) or ".")
        return f"[{link['words']}]({copy})"

    return _LINK.sub(replace, markdown)


def _find_source(page: str, target: str) -> str:
    """Return the path of a link's target below the root of the repository."""
    return posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))


def _name_copy(source: str) -> str:
    """Return the path of a copy in the site. Markdown is copied as text, as its own links lead out of the site."""
    return f"{_FOLDER}/{source}" + (".txt" if source.endswith(".md") else "")
