#!/bin/sh
# Installs the Debian packages that are named, and leaves no package lists behind.
# Only for Containerfiles: where the root file system is made by mmdebstrap, it installs the same packages.
set -eu

export DEBIAN_FRONTEND=noninteractive
# Java's packages link their manual pages here, and fail without the folder, which slim images do not have.
mkdir -p /usr/share/man/man1
apt-get update -q
apt-get install -q -y --no-install-recommends "$@"
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
