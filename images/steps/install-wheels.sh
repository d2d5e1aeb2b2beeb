#!/bin/sh
# Installs what is named, and what that needs, from the wheels in /mnt/wheels (pip is one of them, and stays there)
# into the virtual environment /opt/kontroller, and compiles it: a read-only file system cannot do it later.
set -eu

home=/opt/kontroller
[ -e "$home/pyvenv.cfg" ] || python3 -m venv --without-pip "$home"

started=$(mktemp)
PYTHONPATH=$(echo /mnt/wheels/pip-*.whl) PYTHONDONTWRITEBYTECODE=1 "$home/bin/python3" -m pip install \
    --quiet --root-user-action ignore --disable-pip-version-check --no-cache-dir --no-compile \
    --no-index --find-links /mnt/wheels "$@"
find "$home/lib" -name '*.py' -cnewer "$started" | sort |
    "$home/bin/python3" -m compileall -q --invalidation-mode unchecked-hash -i -
rm "$started"
