#!/bin/sh
# Installs nearmiss: the binary without debug information, which lies apart; man pages, completions, the header.
# Usage: [DESTDIR=DIR] [PREFIX=/usr/local] scripts/install.sh BINARY [--remove]
set -eu
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}$prefix
binary=${1:?usage: scripts/install.sh BINARY [--remove]}
bin=$root/bin share=$root/share
# Distributions keep what is local apart from what they install.
case $prefix in
/usr) zsh=$share/zsh/vendor-completions ;;
*) zsh=$share/zsh/site-functions ;;
esac

fail() { echo "install: $*" >&2; exit 1; }

if [ "${2:-}" = --remove ]; then
    rm -f "$bin/nearmiss" "$bin/.debug/nearmiss.debug" "$share"/man/man1/nearmiss.1.gz "$share"/man/man1/nearmiss-*.1.gz \
        "$share/bash-completion/completions/nearmiss" "$zsh/_nearmiss" \
        "$share/fish/vendor_completions.d/nearmiss.fish" "$root/include/nearmiss-color.h"
    rm -rf "$share/doc/nearmiss"
    exit 0
fi

for tool in objcopy install gzip; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install binutils coreutils gzip"
done
[ -x "$binary" ] || fail "$binary: no such program: run make build first"
mkdir -p "$bin" || fail "cannot write below $root: give DESTDIR or PREFIX, or run as root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# Debuggers look for the link's name in .debug beside the program, and below /usr/lib/debug.
objcopy --only-keep-debug "$binary" "$work/nearmiss.debug"
objcopy --strip-unneeded --remove-section=.comment --add-gnu-debuglink="$work/nearmiss.debug" "$binary" "$work/nearmiss"
mkdir "$work/man"
"$binary" generate man --all "$work/man"
gzip -9n "$work"/man/*.1
for shell in bash zsh fish; do
    "$binary" generate completions "$shell" >"$work/$shell"
done

put() { install -D -m 0644 "$1" "$2"; }
install -D -m 0755 "$work/nearmiss" "$bin/nearmiss.part"
mv "$bin/nearmiss.part" "$bin/nearmiss"
put "$work/nearmiss.debug" "${DEBUGDIR:-$bin/.debug}/nearmiss.debug"
for page in "$work"/man/*.gz; do
    put "$page" "$share/man/man1/$(basename "$page")"
done
put "$work/bash" "$share/bash-completion/completions/nearmiss"
put "$work/zsh" "$zsh/_nearmiss"
put "$work/fish" "$share/fish/vendor_completions.d/nearmiss.fish"
put native/include/nearmiss-color.h "$root/include/nearmiss-color.h"
for page in README.md CHANGELOG.md docs/*.md; do
    put "$page" "$share/doc/nearmiss/$(basename "$page")"
done
