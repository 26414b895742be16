#!/bin/sh
# Fetches Debian's newest 6.12 cloud kernel and unpacks it for the guest; installs nothing.
# Result: ${XDG_CACHE_HOME:-~/.cache}/nearmiss/kernel/<release>/{vmlinuz,overlay.ko,nfnetlink.ko,config}
# Usage: scripts/setup-kernel.sh [PACKAGE]    (a package's name, or a .deb file)
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nearmiss/kernel
fail() { echo "setup-kernel: $*" >&2; exit 1; }

for tool in dpkg-deb xz; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install dpkg xz-utils"
done
mkdir -p "$cache"

# Kernels after 6.12 are not picked: the guest's measurements are tied to this series.
newest_package() {
    apt-cache --names-only search '^linux-image-6\.12\..*-cloud-amd64$' |
        cut -d' ' -f1 | sort -V | tail -n 1
}

deb=${1:-}
case $deb in
*.deb) [ -f "$deb" ] || fail "$deb: no such file" ;;
*)
    package=${deb:-$(newest_package)}
    # Not this machine's Debian release, or no package lists: what was fetched earlier still serves.
    deb=$(ls "$cache"/linux-image-*-cloud-amd64_*.deb 2>/dev/null | sort -V | tail -n 1)
    if [ -n "$package" ]; then
        release=${package#linux-image-}
        if [ -e "$cache/$release/vmlinuz" ] && [ -e "$cache/$release/nfnetlink.ko" ]; then
            echo "$cache/$release"
            exit 0
        fi
        case $deb in
        *"/${package}_"*) ;;
        *)
            download=$(mktemp -d "$cache/download.XXXXXX")
            trap 'rm -rf "$download"' EXIT INT TERM
            (cd "$download" && apt-get -o APT::Sandbox::User=root download "$package" >&2) ||
                fail "cannot download $package: apt-get update, or give a .deb file as argument"
            mv "$download"/*.deb "$cache"/
            deb=$(ls "$cache/${package}"_*.deb | sort -V | tail -n 1)
            ;;
        esac
    fi
    [ -n "$deb" ] || fail "no package linux-image-6.12.*-cloud-amd64 is known: add Debian's bookworm-security or trixie to apt's sources and run apt-get update, or give a .deb file as argument"
    ;;
esac

unpacked=$(mktemp -d "$cache/unpack.XXXXXX")
trap 'rm -rf "$unpacked" ${download:+"$download"}' EXIT INT TERM
dpkg-deb -x "$deb" "$unpacked"
vmlinuz=$(ls "$unpacked"/boot/vmlinuz-* "$unpacked"/usr/lib/modules/*/vmlinuz 2>/dev/null | head -n 1)
[ -n "$vmlinuz" ] || fail "$deb holds no kernel image"
release=$(basename "$(ls -d "$unpacked"/lib/modules/* "$unpacked"/usr/lib/modules/* 2>/dev/null | head -n 1)")
[ -n "$release" ] || release=${vmlinuz##*/vmlinuz-}

mkdir "$unpacked/result"
mv "$vmlinuz" "$unpacked/result/vmlinuz"
mv "$unpacked/boot/config-$release" "$unpacked/result/config" 2>/dev/null || :
take_module() {
    module=$(find "$unpacked" -path "$unpacked/result" -prune -o -name "$1.ko*" -print | head -n 1)
    case $module in
    *.xz) xz -dc "$module" >"$unpacked/result/$2.ko" ;;
    *.zst) zstd -qdc "$module" >"$unpacked/result/$2.ko" ;;
    *.ko) mv "$module" "$unpacked/result/$2.ko" ;;
    esac
}
# overlay for the command's root, nfnetlink for CRIU, which restores snapshots of running processes.
for name in overlay nfnetlink; do
    take_module "$name" "$name"
done
# The drivers of the guest's devices, each behind those that it needs: modules before Debian's 6.12.
mkdir "$unpacked/result/drivers"
number=0
for name in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_console fuse virtiofs; do
    take_module "$name" "drivers/$number-$name"
    number=$((number + 1))
done
chmod -R a+rX "$unpacked/result"
rm -rf "$cache/$release"
mv "$unpacked/result" "$cache/$release"
echo "$cache/$release"
