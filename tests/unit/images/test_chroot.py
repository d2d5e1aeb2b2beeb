"""A user who cannot enter root file systems learns what to do instead."""

import os

import pytest

from devcluster.images.chroot import NeedsRoot, require_root


def test_without_root_the_containerfiles_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NeedsRoot, match=r"images/\*/Containerfile with podman, buildah or docker"):
        require_root()


def test_root_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    require_root()
