#!/bin/sh
# Records a two-thread program many times under each engine on 1, 2 and 4 CPUs; fails where one recording fails or hangs.
# Usage: experiments/engines/stable.sh [RECORDINGS]    (20 for each engine and number of CPUs)
set -eu
cd "$(dirname "$0")/../.."
recordings=${1:-20}
nearmiss=$PWD/target/release/nearmiss
engines=${XDG_CACHE_HOME:-$HOME/.cache}/nearmiss/engines
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM
cc -O2 -pthread -o "$scratch/two-threads" experiments/engines/two-threads.c

failed=0
echo "$(date -u +%F) $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs: measured seconds a recording"
printf '%-8s %4s %4s %7s %8s %8s %8s\n' engine CPUs good failed shortest median longest
for engine in 7.2 10.0 11.1; do
    for cpus in 1 2 4; do
        : >"$scratch/times"
        good=0
        for number in $(seq "$recordings"); do
            from=$(date +%s%N)
            if timeout 120 "$nearmiss" trace --no-trace --runs "$scratch/runs" -m xeon-mp-4way-l3 --cpus "$cpus" \
                --qemu "$engines/$engine/bin/qemu-system-x86_64" -- "$scratch/two-threads" >"$scratch/out" 2>&1 &&
                ! grep -q 'is cut' "$scratch/out"; then
                good=$((good + 1))
            else
                failed=$((failed + 1))
                echo "QEMU $engine, $cpus CPUs, recording $number failed:"
                tail -n 5 "$scratch/out"
            fi
            echo "$from $(date +%s%N)" | awk '{ printf "%.2f\n", ($2 - $1) / 1e9 }' >>"$scratch/times"
            rm -rf "$scratch/runs"
        done
        sort -n "$scratch/times" | awk -v engine="$engine" -v cpus="$cpus" -v good="$good" '
            { time[NR] = $1 }
            END { printf "%-8s %4d %4d %7d %8.2f %8.2f %8.2f\n", engine, cpus, good, NR - good,
                         time[1], time[int((NR + 1) / 2)], time[NR] }'
    done
done
[ "$failed" = 0 ] || { echo "$failed recordings failed"; exit 1; }
echo "no recording failed"
