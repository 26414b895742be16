#!/bin/sh
# Unpacks QEMU 10 of Debian's bookworm-backports beside the installed one; installs nothing.
# Result: ${XDG_CACHE_HOME:-~/.cache}/nearmiss/qemu/10/{bin,firmware,lib}: give bin/qemu-system-x86_64
# as QEMU and firmware as its -L. Optional: the reference engine is the installed QEMU 7.2.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nearmiss/qemu
fail() { echo "setup-qemu10: $*" >&2; exit 1; }
for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || fail "$tool is missing: this script is for Debian 12"
done
if [ -x "$cache/10/bin/qemu-system-x86_64" ]; then
    echo "$cache/10"
    exit 0
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM

# A list of its own, so that this machine's packages are neither changed nor upgraded.
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs"
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
    head -n 1 | tr -d ' ')
[ -n "$mirror" ] || fail "apt's sources name no Debian mirror"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main" >"$work/sources.list"
apt() {
    apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@" >&2
}
apt update || fail "cannot read the package list of bookworm-backports"
(cd "$work/debs" && apt download qemu-system-x86 qemu-system-common qemu-system-data seabios) ||
    fail "cannot download QEMU 10"
for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$work/tree"
done
mkdir -p "$work/10/bin" "$work/10/firmware"
mv "$work/tree/usr/bin/qemu-system-x86_64" "$work/10/bin/"
cp -R "$work/tree/usr/share/qemu/." "$work/10/firmware/"
cp -R "$work/tree/usr/share/seabios/." "$work/10/firmware/"
find "$work/10/firmware" -xtype l -delete
missing=$(ldd "$work/10/bin/qemu-system-x86_64" | grep 'not found' || :)
[ -z "$missing" ] || fail "QEMU 10 needs libraries that are not installed:
$missing"
rm -rf "$cache/10"
mv "$work/10" "$cache/10"
echo "$cache/10"
