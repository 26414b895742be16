#!/bin/sh
# Makes a fresh Debian with debootstrap and runs `make run` and `make test` in it, from a clone of this tree's last commit.
# Needs root and debootstrap. Usage: scripts/try-release.sh RELEASE [GOAL ...]    (bookworm or trixie; run and test)
#
# The output goes to experiments/engines/RELEASE-GOAL.txt. The system lies in /var/tmp and goes with this script; set
# KEEP=1 to keep it, and SYSTEM=DIRECTORY to go on in one that was kept. BUSY=4 runs the tests beside four busy loops, and
# its output goes to RELEASE-test-busy.txt. Crates come from this user's cargo cache where there is one.
set -eu
cd "$(dirname "$0")/.."
release=${1:?usage: scripts/try-release.sh RELEASE [GOAL ...]}
shift
[ $# -gt 0 ] || set -- run test
fail() { echo "try-release: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "needs root, for debootstrap and chroot"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
mirror=$(scripts/debian-mirror.sh)

system=${SYSTEM:-$(mktemp -d "/var/tmp/nearmiss-$release.XXXXXX")}
away() {
    [ -n "${KEEP:-}" ] || rm -rf --one-file-system "$system"
}
trap away EXIT
trap 'exit 130' INT TERM

make_system() {
    debootstrap --variant=minbase --include=ca-certificates,git,make,procps "$release" "$system" "$mirror" >"$system.log" 2>&1 ||
        fail "debootstrap failed: $system.log"
    rm -f "$system.log"
    key="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    {
        echo "deb $key $mirror $release main"
        echo "deb $key $mirror $release-updates main"
        echo "deb $key ${mirror%/debian*}/debian-security $release-security main"
    } >"$system/etc/apt/sources.list"
    mkdir -p "$system/root/.cargo"
    for file in config.toml registry; do
        [ ! -e "${CARGO_HOME:-$HOME/.cargo}/$file" ] || cp -a "${CARGO_HOME:-$HOME/.cargo}/$file" "$system/root/.cargo/"
    done
    cp /etc/resolv.conf /etc/hosts "$system/etc/" 2>/dev/null || :
    [ ! -d /etc/apt/apt.conf.d ] || cp -n /etc/apt/apt.conf.d/*proxy* "$system/etc/apt/apt.conf.d/" 2>/dev/null || :
}
[ -e "$system/etc/debian_version" ] || make_system
if [ -e "$system/root/nearmiss" ]; then
    git -C "$system/root/nearmiss" fetch -q "$PWD" HEAD
    git -C "$system/root/nearmiss" checkout -q --force FETCH_HEAD
else
    git clone -q . "$system/root/nearmiss"
fi
chmod 755 "$system" # mktemp keeps others out, and packages have users of their own
# Its root is a mount of its own, as that of every system: in a chroot the kernel refuses user namespaces.
inside='
    mount --make-rprivate / && mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc &&
    mount --rbind /sys sys && mount --rbind /dev dev && pivot_root . mnt && cd / && umount -l /mnt && cd root/nearmiss &&
    exec env -i HOME=/root USER=root TERM=dumb LANG=C.UTF-8 CARGO_TERM_COLOR=never \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ${2:+scripts/beside.sh "$2"} make "$1"'

status=0
for goal in "$@"; do
    output=experiments/engines/$release-$goal.txt
    # What is built before is not to be built beside the loops.
    if [ "$goal" = test ] && [ -n "${BUSY:-}" ]; then
        unshare -m sh -c "$inside" "$system" build-tests >"$system/root/build-tests.log" 2>&1 || fail "build-tests: see its log"
        loops=$BUSY output=experiments/engines/$release-test-busy.txt
    else
        loops=
    fi
    # The summary and what was skipped are worth keeping; the rest is of a build.
    if unshare -m sh -c "$inside" "$system" "$goal" "$loops" >"$system/root/$goal.log" 2>&1; then
        verdict="succeeded"
    else
        verdict="FAILED" status=1
    fi
    {
        echo "Debian $(cat "$system/etc/debian_version"), commit $(git -C "$system/root/nearmiss" rev-parse --short HEAD), $(date -u +%F): make $goal ${loops:+beside $loops busy loops }$verdict"
        if [ "$goal" = test ]; then
            grep -E '^(test result:.*ignored$|failures:|    [a-z_:]+$|.*skipped: )' "$system/root/$goal.log" | sort | uniq -c | sort -rn | head -n 60 || :
            tail -n 2 "$system/root/$goal.log"
        else
            tail -n 120 "$system/root/$goal.log"
        fi
    } >"$output"
    [ "$status" = 0 ] || cp "$system/root/$goal.log" "${TMPDIR:-/tmp}/nearmiss-$release-$goal.log"
    head -n 1 "$output"
done
exit "$status"
