#!/bin/sh
# Installs the wheels in /mnt/wheels that are not installed yet (pip is one of them, and stays there) into the virtual
# environment /opt/kontroller, and compiles them: a read-only file system cannot do it later. The wheels are complete.
set -eu

home=/opt/kontroller
[ -e "$home/pyvenv.cfg" ] || python3 -m venv --without-pip "$home"

started=$(mktemp)
# shellcheck disable=SC2046
PYTHONPATH=$(echo /mnt/wheels/pip-*.whl) PYTHONDONTWRITEBYTECODE=1 "$home/bin/python3" -m pip install \
    --quiet --root-user-action ignore --disable-pip-version-check --no-cache-dir --no-compile \
    --no-index --no-deps $(find /mnt/wheels -name '*.whl' ! -name 'pip-*' | sort)
find "$home/lib" -name '*.py' -cnewer "$started" | sort |
    "$home/bin/python3" -m compileall -q --invalidation-mode unchecked-hash -i -
rm "$started"
