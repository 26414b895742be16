#!/bin/sh
# Unpacks other releases' QEMU and virtiofsd, with the libraries that they need, beside the installed ones.
# Installs nothing. Usage: scripts/setup-engines.sh [ENGINE ...]    (7.2, 10.0 and 11.1 without arguments)
#
# Each engine lies in ${XDG_CACHE_HOME:-~/.cache}/nearmiss/engines/ENGINE. Its bin/qemu-system-x86_64 and bin/virtiofsd
# start the unpacked programs through the unpacked dynamic linker, since they may want a newer C library.
# Give bin/qemu-system-x86_64 as `nearmiss trace --qemu`; nearmiss takes the virtiofsd beside it.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nearmiss/engines
fail() { echo "setup-engines: $*" >&2; exit 1; }
mirror=$("$(dirname "$0")/debian-mirror.sh")

# The release that has an engine, and the packages to unpack.
release_of() {
    case $1 in
    7.2) echo bookworm ;;
    10.0) echo trixie ;;
    11.1) echo trixie-backports ;;
    *) fail "$1: no such engine; there are 7.2, 10.0 and 11.1" ;;
    esac
}

# A list of its own and an empty state: this machine's packages are neither changed nor taken for granted.
apt() {
    apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
        -o APT::Sandbox::User=root "$@"
}

start_through_linker() { # NAME PROGRAM [ARGUMENT ...]
    name=$1 program=$2
    shift 2
    cat >"$work/engine/bin/$name" <<END
#!/bin/sh
tree=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
lib=\$tree/usr/lib/x86_64-linux-gnu
export QEMU_MODULE_DIR="\$lib/qemu"
exec "\$lib/ld-linux-x86-64.so.2" --library-path "\$lib" "\$tree/$program" $* "\$@"
END
    chmod +x "$work/engine/bin/$name"
}

unpack() {
    engine=$1 release=$(release_of "$1")
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    trap 'rm -rf "$work"' EXIT INT TERM
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs" "$work/engine/bin"
    : >"$work/status"
    for suite in "${release%-backports}" "$release"; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
    done | uniq >"$work/sources.list"
    packages="qemu-system-x86 qemu-system-common qemu-system-data seabios"
    [ "$engine" = 7.2 ] || packages="$packages virtiofsd"
    apt update >&2 || fail "cannot read the package list of $release"
    # shellcheck disable=SC2086
    apt install --yes --no-install-recommends --download-only -t "$release" $packages >&2 ||
        fail "cannot download QEMU of $release"
    for deb in "$work"/cache/archives/*.deb; do
        dpkg-deb -x "$deb" "$work/engine"
    done
    # Before the merge of /usr libraries lie in /lib.
    if [ -d "$work/engine/lib" ] && [ ! -L "$work/engine/lib" ]; then
        cp -R "$work/engine/lib/." "$work/engine/usr/lib/"
    fi
    start_through_linker qemu-system-x86_64 usr/bin/qemu-system-x86_64 \
        -L '"$tree/usr/share/seabios"' -L '"$tree/usr/share/qemu"'
    server=usr/libexec/virtiofsd
    [ "$engine" != 7.2 ] || server=usr/lib/qemu/virtiofsd
    start_through_linker virtiofsd "$server"
    "$work/engine/bin/qemu-system-x86_64" --version >&2 || fail "QEMU of $release does not start"
    # What starting a guest needs and no more.
    for extra in usr/share/doc usr/share/locale usr/share/man usr/sbin usr/share/perl usr/share/perl5 \
        usr/lib/x86_64-linux-gnu/perl usr/lib/x86_64-linux-gnu/perl-base; do
        rm -rf "${work:?}/engine/$extra"
    done
    rm -rf "${cache:?}/$engine"
    mv "$work/engine" "$cache/$engine"
    rm -rf "$work"
    trap - EXIT INT TERM
}

mkdir -p "$cache"
[ $# -gt 0 ] || set -- 7.2 10.0 11.1
for engine in "$@"; do
    release_of "$engine" >/dev/null
    [ -x "$cache/$engine/bin/qemu-system-x86_64" ] || unpack "$engine"
    echo "$cache/$engine"
done
