#!/bin/sh
# Fetches the unpacked source of a Debian package, once. Leaves the machine's own lists of packages alone.
# Usage: research/papers/pollution/source.sh PACKAGE DIRECTORY
set -eu
package=$1
directory=$2
[ ! -d "$directory" ] || exit 0

fail() { echo "source.sh: $*" >&2; exit 1; }
command -v apt-get >/dev/null || fail "this is no Debian: unpack some source with a configure script at $directory"
parent=$(dirname "$directory")
mkdir -p "$parent"
parent=$(cd "$parent" && pwd)
work=$(mktemp -d "$parent/.source-XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM

. /etc/os-release
mkdir -p "$work/lists/partial" "$work/unpacked"
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
    head -n 1 | tr -d ' ')
[ -n "$mirror" ] || fail "apt's sources name no Debian mirror"
echo "deb-src $mirror $VERSION_CODENAME main" >"$work/sources.list"
options="-q -o Dir::Etc::SourceList=$work/sources.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$work/lists
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root"
cd "$work/unpacked"
# shellcheck disable=SC2086
apt-get $options update >&2 || fail "no list of sources from $mirror"
# shellcheck disable=SC2086
apt-get $options source "$package" >&2 || fail "no source of $package"
cd ..
mv unpacked/*/ source
mv source "$parent/$(basename "$directory")"
