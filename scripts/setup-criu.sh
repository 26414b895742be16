#!/bin/sh
# Unpacks a CRIU that serves this machine's kernel, with the libraries that it needs, beside the installed one.
# Installs nothing. Usage: scripts/setup-criu.sh [VERSION ...]    (3.17, 4.1 or 4.2; without one, 4.2)
#
# Each lies in ${XDG_CACHE_HOME:-~/.cache}/nearmiss/criu/VERSION. Its bin/criu starts the unpacked program through the
# unpacked dynamic linker, since it may want a newer C library. `nearmiss trace -p` takes the newest there.
#
# 3.17 fails on kernels from 6.16 on (the bounds of the vDSO); 4.1 serves them.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nearmiss/criu
fail() { echo "setup-criu: $*" >&2; exit 1; }
mirror=$("$(dirname "$0")/debian-mirror.sh")

# The release that has a version.
release_of() {
    case $1 in
    3.17) echo bookworm ;;
    4.1) echo trixie ;;
    4.2) echo sid ;;
    *) fail "$1: no such CRIU; there are 3.17, 4.1 and 4.2" ;;
    esac
}

# A list of its own and an empty state: this machine's packages are neither changed nor taken for granted.
apt() {
    apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
        -o APT::Sandbox::User=root "$@"
}

start_through_linker() {
    mkdir -p "$work/criu/bin"
    cat >"$work/criu/bin/criu" <<'END'
#!/bin/sh
tree=$(dirname "$(dirname "$(readlink -f "$0")")")
lib=$tree/usr/lib/x86_64-linux-gnu
exec "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$tree/usr/sbin/criu" "$@"
END
    chmod +x "$work/criu/bin/criu"
}

unpack() {
    version=$1 release=$(release_of "$1")
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    trap 'rm -rf "$work"' EXIT INT TERM
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/criu"
    : >"$work/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$work/sources.list"
    apt update >&2 || fail "cannot read the package list of $release"
    apt install --yes --no-install-recommends --download-only criu >&2 || fail "cannot download CRIU of $release"
    for deb in "$work"/cache/archives/*.deb; do
        dpkg-deb -x "$deb" "$work/criu"
    done
    # Before the merge of /usr libraries lie in /lib.
    if [ -d "$work/criu/lib" ] && [ ! -L "$work/criu/lib" ]; then
        cp -R "$work/criu/lib/." "$work/criu/usr/lib/"
    fi
    start_through_linker
    "$work/criu/bin/criu" --version >&2 || fail "CRIU of $release does not start"
    # What starting it needs and no more.
    find "$work/criu" -mindepth 1 -maxdepth 1 ! -name usr ! -name bin -exec rm -rf {} +
    find "$work/criu/usr" -mindepth 1 -maxdepth 1 ! -name lib ! -name sbin ! -name bin -exec rm -rf {} +
    find "$work/criu/usr/sbin" "$work/criu/usr/bin" ! -type d ! -name criu -exec rm -f {} +
    find "$work/criu/usr/lib" -mindepth 1 -maxdepth 1 ! -name x86_64-linux-gnu -exec rm -rf {} +
    find "$work/criu/usr/lib/x86_64-linux-gnu" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
    "$work/criu/bin/criu" --version >/dev/null || fail "CRIU of $release does not start once stripped"
    rm -rf "${cache:?}/$version"
    mv "$work/criu" "$cache/$version"
    rm -rf "$work"
    trap - EXIT INT TERM
}

mkdir -p "$cache"
[ $# -gt 0 ] || set -- 4.2
for version in "$@"; do
    release_of "$version" >/dev/null
    [ -x "$cache/$version/bin/criu" ] || unpack "$version"
    echo "$cache/$version"
done
