#!/bin/sh
# Installs what nearmiss needs and this machine lacks: Debian packages, a Rust toolchain, the guest's kernel.
# Running it again is harmless and quick. Usage: scripts/setup.sh [--tests]    (--tests: what only tests and bench use too)
set -eu
cd "$(dirname "$0")/.."

# The guest's file server is a package of its own from Debian 13 on; in Debian 12 qemu-system-common has it.
file_server() {
    # shellcheck disable=SC1091
    [ "$(. /etc/os-release && echo "${VERSION_ID:-99}")" = 12 ] || echo virtiofsd
}

packages="qemu-system-x86 qemu-system-common $(file_server) gcc libc6-dev make clang libbpf-dev xz-utils zstd"
if [ "${1:-}" = --tests ]; then
    packages="$packages valgrind chromium redis-server sqlite3 python3 python3-venv tmux linux-perf strace bpftrace e2fsprogs util-linux-extra dpkg-dev lintian nginx varnish wrk fio munge slurmctld slurmd slurm-client"
fi
wanted_rust=1.95

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "needs root for: $*"
    fi
}

updated=
install() {
    command -v apt-get >/dev/null || fail "this is no Debian: install by hand what these Debian packages hold: $*"
    [ -n "$updated" ] || as_root apt-get update -q
    updated=yes
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

# Recent enough: the version's two parts, compared as numbers.
rust_is_recent() {
    command -v cargo >/dev/null || return 1
    have=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
    printf '%s\n%s\n' "$wanted_rust" "$have" | sort -V -C
}

missing=
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :)
    [ "$state" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    say "installing$missing"
    # shellcheck disable=SC2086
    install $missing
fi

if ! rust_is_recent; then
    if command -v rustup >/dev/null; then
        say "installing the toolchain of rust-toolchain.toml with rustup"
        rustup toolchain install --profile minimal -c clippy -c rustfmt \
            "$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)"
    else
        # Debian's toolchain for web browsers is the recent one; /usr/bin/cargo and /usr/bin/rustc as usual.
        say "installing Debian's rustc-web, cargo-web and rustfmt-web"
        install rustc-web cargo-web rustfmt-web
    fi
    rust_is_recent || fail "no Rust $wanted_rust or later: install it with rustup, then run this again"
fi

say "kernel for the guest: $(scripts/setup-kernel.sh)"
say "newer kernel, for tests of sched_ext: $(scripts/setup-newer-kernel.sh 2>&1 || :)"
# Debian 12's own CRIU fails on its newest kernels; nothing is installed.
command -v criu >/dev/null || say "CRIU, for trace -p: $(scripts/setup-criu.sh 2>/dev/null || echo "none: see scripts/setup-criu.sh")"
[ "${1:-}" != --tests ] || say "emulators of other releases:" $(scripts/setup-engines.sh 2>/dev/null || echo "none: see scripts/setup-engines.sh")
[ "${1:-}" != --tests ] || say "Python with packages for tests: $(scripts/setup-python.sh 2>/dev/null || echo "none: see scripts/setup-python.sh")"
say "done"
