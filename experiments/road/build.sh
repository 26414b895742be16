#!/bin/sh
# Seconds and size of `nearmiss` built from nothing, at two commits: one after the other, in clones that go afterwards.
# Usage: experiments/road/build.sh BEFORE AFTER    (two commits; some ten minutes)
set -eu
cd "$(dirname "$0")/../.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT INT TERM

echo "cargo build --release -p nearmiss-cli from nothing, measured; on $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
for commit in "$@"; do
    git clone -q . "$place/$commit"
    (
        cd "$place/$commit"
        git checkout -q "$commit"
        cargo fetch -q
        began=$(date +%s)
        cargo build -q --release -p nearmiss-cli
        echo "$commit: $(($(date +%s) - began)) s, $(($(stat -c %s target/release/nearmiss) / 1000000)) MB"
    )
    rm -rf "${place:?}/$commit"
done
