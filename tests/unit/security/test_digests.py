"""The digests that the product uses are those that docs/security.md names."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.shipped import read_sources

OF_DIGEST_MD5: Final = "controller_core/zk/kazoo/digest_md5.py"
WITHOUT_SECRETS: Final = {"controller_core/admin/quotas/buckets.py", "controller_core/polling/groups.py"}
"""They make short keys of their own of long texts."""
UNAPPROVED: Final = re.compile(
    r"(openssl_)?(md[245]|ripemd[0-9]*|sha[-_]?1|whirlpool|sm3|rc4|des|blake2[bs]?|blake3)", re.IGNORECASE
)


def find_names(source: str) -> Iterator[str]:
    """Yield the names and short texts of a source that could name a digest."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.Constant(value=str(name)):
                yield name


def test_no_digest_but_sha_2_is_used_except_where_the_page_says_so() -> None:
    found = {
        path: digests
        for path, source in read_sources()
        if (digests := {name for name in find_names(source) if UNAPPROVED.fullmatch(name)})
    }
    assert found == {OF_DIGEST_MD5: {"md5"}, **{path: {"blake2b"} for path in WITHOUT_SECRETS}}
