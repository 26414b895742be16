#!/bin/sh
# Fetches the newest cloud kernel of a series from a Debian suite beside the usual one: 6.18 of trixie-backports, or what
# is named. Installs nothing, and leaves apt's own sources and lists alone. Guests boot it where it is named (`trace
# --kernel`); tests of sched_ext do, and experiments/layout/kernel.py with 6.1.
# Usage: scripts/setup-newer-kernel.sh [SERIES SUITE]    (such as 6.1 bookworm)
set -eu

series=${1:-6.18}
suite=${2:-trixie-backports}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nearmiss/kernel
fail() { echo "setup-newer-kernel: $*" >&2; exit 1; }

here=$(ls -d "$cache/$series".*-cloud-amd64 2>/dev/null | sort -V | tail -n 1)
if [ -n "$here" ] && [ -e "$here/vmlinuz" ]; then
    echo "$here"
    exit 0
fi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || fail "$keyring is missing: apt-get install debian-archive-keyring"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/sources"
: >"$work/none"
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
    head -n 1 | tr -d ' ')
[ -n "$mirror" ] || fail "apt's sources name no Debian mirror"
echo "deb [signed-by=$keyring] $mirror $suite main" >"$work/sources/suite.list"
private() {
    tool=$1
    shift
    "$tool" -o Dir::Etc::SourceList="$work/none" -o Dir::Etc::SourceParts="$work/sources" \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}
private apt-get -q update >"$work/said" 2>&1 || fail "no package lists: $(tail -n 1 "$work/said")"
package=$(private apt-cache pkgnames "linux-image-$series." | grep -- '-cloud-amd64$' | sort -V | tail -n 1)
[ -n "$package" ] || fail "$suite has no linux-image-$series.*-cloud-amd64"
(cd "$work" && private apt-get -q download "$package" >"$work/said" 2>&1) ||
    fail "cannot download $package: $(tail -n 1 "$work/said")"
"$(dirname "$0")/setup-kernel.sh" "$(ls "$work/linux-image-$series".*.deb)"
