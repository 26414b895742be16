#!/bin/sh
# Seconds and size of `nearmiss` built from nothing, at two commits: one after the other, in clones that go afterwards.
# Usage: experiments/road/build.sh BEFORE AFTER    (two commits; some ten minutes)
# The binaries stay in target/road, for experiments/road/answers.py.
set -eu
cd "$(dirname "$0")/../.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT INT TERM
mkdir -p target/road

echo "cargo build --release -p nearmiss-cli from nothing, measured; on $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
for commit in "$@"; do
    git clone -q . "$place/$commit"
    (
        cd "$place/$commit"
        git checkout -q "$commit"
        cargo fetch -q
        /usr/bin/time -f '%e %U %S' -o "$place/times" cargo build -q --release -p nearmiss-cli
        awk -v commit="$commit" -v bytes="$(stat -c %s target/release/nearmiss)" \
            '{ printf "%s: %d s, %d s of CPU time, %d MB\n", commit, $1, $2 + $3, bytes / 1000000 }' "$place/times"
    )
    cp "$place/$commit/target/release/nearmiss" "target/road/nearmiss-$commit"
    rm -rf "${place:?}/$commit"
done
