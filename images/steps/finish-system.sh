#!/bin/sh
# Makes a Debian root file system with Python what the images stand on: small, without setuid programs, with the
# user that everything runs as, and with the standard library compiled (a read-only file system cannot do it later).
set -eu

find /usr/share/doc -type f ! -name copyright -delete
find /usr/share/doc -mindepth 1 -type d -empty -delete
rm -rf /usr/share/man/* /usr/share/info/* /usr/share/locale/* /usr/share/lintian \
    /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/cache/debconf/*-old \
    /var/cache/ldconfig/aux-cache /var/log/apt /var/log/*.log /var/lib/dpkg/*-old

find / -xdev -type f -perm /6000 -exec chmod a-s {} +

echo 'kontroller:x:65532:65532:Kontroller:/tmp:/usr/sbin/nologin' >>/etc/passwd
echo 'kontroller:x:65532:' >>/etc/group
# Their backups would be older copies of the same.
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow-

library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
# Trusted whatever the time stamps of the sources: an image's files have other ones than those that were compiled.
python3 -m compileall -q -f --invalidation-mode unchecked-hash "$library"
