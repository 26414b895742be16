#!/bin/sh
# Prints the Debian mirror that apt's sources name, for scripts that unpack packages of other releases.
set -eu
fail() { echo "debian-mirror: $*" >&2; exit 1; }
for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || fail "$tool is missing: this machine is no Debian"
done
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
    head -n 1 | tr -d ' ')
[ -n "$mirror" ] || fail "apt's sources name no Debian mirror"
echo "$mirror"
