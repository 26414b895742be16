#!/bin/sh
# Installs nearmiss and the two programs beside it: without debug information, which lies apart; man pages, completions,
# the header, a unit of systemd for the accelerator.
# Usage: [DESTDIR=DIR] [PREFIX=/usr/local] scripts/install.sh BINARY [--remove]    (BINARY: .../nearmiss)
set -eu
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}$prefix
binary=${1:?usage: scripts/install.sh BINARY [--remove]}
bin=$root/bin share=$root/share unit=$root/lib/systemd/system/nearmiss-accelerator.service
programs="nearmiss nearmiss-accelerator nearmiss-webload"
# Distributions keep what is local apart from what they install.
case $prefix in
/usr) zsh=$share/zsh/vendor-completions ;;
*) zsh=$share/zsh/site-functions ;;
esac

fail() { echo "install: $*" >&2; exit 1; }

if [ "${2:-}" = --remove ]; then
    for name in $programs; do
        rm -f "$bin/$name" "$bin/.debug/$name.debug" "$share/bash-completion/completions/$name" "$zsh/_$name" \
            "$share/fish/vendor_completions.d/$name.fish"
    done
    rm -f "$share"/man/man1/nearmiss.1.gz "$share"/man/man1/nearmiss-*.1.gz "$root"/include/nearmiss-*.h "$unit"
    rm -rf "$share/doc/nearmiss"
    exit 0
fi

for tool in objcopy install gzip; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install binutils coreutils gzip"
done
for name in $programs; do
    [ -x "$(dirname "$binary")/$name" ] || fail "$(dirname "$binary")/$name: no such program: run make all first"
done
mkdir -p "$bin" || fail "cannot write below $root: give DESTDIR or PREFIX, or run as root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

put() { install -D -m 0644 "$1" "$2"; }

# One program with its symbols, completions and man pages.
install_program() {
    from=$(dirname "$binary")/$1
    # Debuggers look for the link's name in .debug beside the program, and below /usr/lib/debug.
    objcopy --only-keep-debug "$from" "$work/$1.debug"
    objcopy --strip-unneeded --remove-section=.comment --add-gnu-debuglink="$work/$1.debug" "$from" "$work/$1"
    install -D -m 0755 "$work/$1" "$bin/$1.part"
    mv "$bin/$1.part" "$bin/$1"
    put "$work/$1.debug" "${DEBUGDIR:-$bin/.debug}/$1.debug"
    for shell in bash zsh fish; do
        "$from" generate completions "$shell" >"$work/$1.$shell"
    done
    put "$work/$1.bash" "$share/bash-completion/completions/$1"
    put "$work/$1.zsh" "$zsh/_$1"
    put "$work/$1.fish" "$share/fish/vendor_completions.d/$1.fish"
    "$from" generate man --all "$work/man"
}

mkdir "$work/man"
for name in $programs; do
    install_program "$name"
done
gzip -9n "$work"/man/*.1
for page in "$work"/man/*.gz; do
    put "$page" "$share/man/man1/$(basename "$page")"
done
sed "s|@PREFIX@|$prefix|" apps/accelerator/nearmiss-accelerator.service >"$work/unit"
put "$work/unit" "$unit"
put examples/accelerator.toml "$share/doc/nearmiss/examples/accelerator.toml"
for header in nearmiss-bypass.h nearmiss-color.h; do
    put "native/include/$header" "$root/include/$header"
done
# Below the folder as here, so that the pages' links to one another hold.
for page in README.md CHANGELOG.md docs/*.md docs/guide/*.md docs/reference/*.md docs/design/*.md docs/pictures/*.svg; do
    put "$page" "$share/doc/nearmiss/$page"
done
