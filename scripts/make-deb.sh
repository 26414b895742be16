#!/bin/sh
# Builds Debian packages of a built nearmiss, nearmiss_VERSION_ARCH.deb and nearmiss-dbgsym_….deb, and prints their paths.
# Usage: [DEBFULLNAME=NAME DEBEMAIL=ADDRESS] scripts/make-deb.sh BINARY [DIRECTORY]
set -eu
cd "$(dirname "$0")/.."

binary=${1:?usage: scripts/make-deb.sh BINARY [DIRECTORY]}
fail() { echo "make-deb: $*" >&2; exit 1; }
for tool in dpkg-deb dpkg-shlibdeps objcopy; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install dpkg-dev binutils"
done

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
# Debian's own variables name who packages; else the author of the newest commit does.
maintainer="${DEBFULLNAME:-$(git log -1 --format=%an)} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
tree=$work/nearmiss symbols=$work/nearmiss-dbgsym
umask 022

DESTDIR=$tree PREFIX=/usr DEBUGDIR=$symbols/usr/lib/debug/usr/bin scripts/install.sh "$binary"
cat >"$work/changelog" <<CHANGELOG
nearmiss ($version) unstable; urgency=medium

  * CHANGELOG.md beside this file tells what changed.

 -- $maintainer  $(git log -1 --format=%aD)
CHANGELOG
gzip -9nc "$work/changelog" >"$tree/usr/share/doc/nearmiss/changelog.gz"
mkdir -p "$symbols/usr/share/doc"
ln -s nearmiss "$symbols/usr/share/doc/nearmiss-dbgsym"
cat >"$tree/usr/share/doc/nearmiss/copyright" <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: nearmiss

Files: *
Copyright: The nearmiss authors
License: MIT or Apache-2.0

Files: native/tap/*
Copyright: The nearmiss authors
License: GPL-2.0-or-later

Files: native/bpf/*
Copyright: The nearmiss authors
License: GPL-2.0-only or BSD-2-Clause

License: MIT
$(tail -n +3 LICENSE-MIT | sed 's/^$/./; s/^/ /')

License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

License: GPL-2.0-or-later
 On Debian systems the text is in /usr/share/common-licenses/GPL-2.

License: GPL-2.0-only
 On Debian systems the text is in /usr/share/common-licenses/GPL-2.

License: BSD-2-Clause
 Redistribution and use in source and binary forms, with or without
 modification, are permitted provided that the following conditions are met:
 .
 1. Redistributions of source code must retain the above copyright notice, this
 list of conditions and the following disclaimer.
 .
 2. Redistributions in binary form must reproduce the above copyright notice,
 this list of conditions and the following disclaimer in the documentation
 and/or other materials provided with the distribution.
 .
 This software is provided by the copyright holders and contributors "as is" and
 any express or implied warranties, including, but not limited to, the implied
 warranties of merchantability and fitness for a particular purpose are
 disclaimed. In no event shall the copyright holder or contributors be liable
 for any direct, indirect, incidental, special, exemplary, or consequential
 damages (including, but not limited to, procurement of substitute goods or
 services; loss of use, data, or profits; or business interruption) however
 caused and on any theory of liability, whether in contract, strict liability,
 or tort (including negligence or otherwise) arising in any way out of the use
 of this software, even if advised of the possibility of such damage.
COPYRIGHT

# What the binaries link against, as Debian's own tool tells it.
mkdir "$work/debian"
printf 'Source: nearmiss\nMaintainer: %s\n\nPackage: nearmiss\nArchitecture: any\n' "$maintainer" >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$tree"/usr/bin/nearmiss* 2>/dev/null | sed -n 's/^shlibs:Depends=//p')

size() { du -sk --exclude=DEBIAN "$1" | cut -f1; }
control() {
    mkdir "$1/DEBIAN"
    (cd "$1" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$1/DEBIAN/md5sums"
    cat >"$1/DEBIAN/control"
}
control "$tree" <<CONTROL
Package: nearmiss
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(size "$tree")
Depends: $depends
Recommends: qemu-system-x86, virtiofsd | qemu-system-common (<< 1:8), xz-utils
Suggests: linux-image-cloud-$architecture
Section: devel
Priority: optional
Description: find, remedy and measure the cache misses of a Linux program
 nearmiss records what an unmodified program does to caches, locks and sockets,
 replays the record on a model of any machine, names what is wrong, rehearses a
 remedy on the record, applies the remedy from outside, and measures whether it
 helped.
 .
 Tracing runs the program in a throw-away guest. The guest's kernel is fetched
 by "nearmiss kernel --unpack" into a folder of the user's own: what this
 machine boots stays as it is.
 .
 nearmiss-accelerator is a caching reverse proxy for HTTP/1.1 whose waits can be
 paced; nearmiss-webload puts servers under a load at a fixed rate.
CONTROL
control "$symbols" <<CONTROL
Package: nearmiss-dbgsym
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(size "$symbols")
Depends: nearmiss (= $version)
Section: debug
Priority: optional
Description: debug symbols for nearmiss
 Debuggers and profilers find the symbols by the link in the installed program.
CONTROL

out=${2:-target/debian}
mkdir -p "$out"
for package in nearmiss nearmiss-dbgsym; do
    file=${package}_${version}_$architecture.deb
    dpkg-deb --root-owner-group -Zxz --build "$work/$package" "$work/$file" >/dev/null
    mv "$work/$file" "$out/$file"
    echo "$out/$file"
done
