#!/bin/sh
# Makes the Java runtime /opt/java from an installed JDK 17: all of Java SE, without the desktop's dependencies and
# the compilers, and with the class data archive that makes a start quick.
set -eu

modules=java.se,jdk.charsets,jdk.crypto.cryptoki,jdk.crypto.ec,jdk.httpserver,jdk.jcmd,jdk.localedata
modules=$modules,jdk.management,jdk.management.agent,jdk.naming.dns,jdk.net,jdk.security.auth,jdk.security.jgss
modules=$modules,jdk.unsupported,jdk.zipfs
# Spark is started with this one.
modules=$modules,jdk.incubator.vector

jlink --add-modules "$modules" --vm server --strip-java-debug-attributes --no-header-files --no-man-pages \
    --output /opt/java
# The list of parts has it, so that Debian's advisories can be looked up.
dpkg-query --show --showformat '${Version}\n' openjdk-17-jre-headless >/opt/java/debian-version
/opt/java/bin/java -Xshare:dump -XX:-UsePerfData >/dev/null
