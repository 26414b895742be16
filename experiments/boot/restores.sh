#!/bin/sh
# Restores the saved guest many times on 1, 2 and 4 CPUs, each time to record a program that prints random numbers; fails
# where a recording fails, a guest was booted, or two guests have a number in common.
# Usage: experiments/boot/restores.sh [RECORDINGS]    (200 in all); NEARMISS_QEMU names the emulator.
set -eu
cd "$(dirname "$0")/../.."
recordings=${1:-200}
nearmiss=$PWD/target/release/nearmiss
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM
cat >"$scratch/random.c" <<'C'
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/random.h>
static void print(const char *what, const unsigned char *bytes)
{
    printf("%s ", what);
    for (int i = 0; i < 16; i++)
        printf("%02x", bytes[i]);
    puts("");
}
int main(void)
{
    unsigned char bytes[16];
    print("at-random", (const unsigned char *)getauxval(AT_RANDOM));
    if (getrandom(bytes, sizeof bytes, 0) == sizeof bytes)
        print("urandom", bytes);
    return 0;
}
C
cc -o "$scratch/random" "$scratch/random.c"

failed=0
: >"$scratch/all"
echo "$(date -u +%F) $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs: measured seconds a recording"
printf '%4s %8s %7s %8s %8s %8s\n' CPUs restored failed shortest median longest
for cpus in 1 2 4; do
    : >"$scratch/times"
    good=0
    count=$((recordings / 3))
    [ "$cpus" = 1 ] && count=$((recordings - 2 * (recordings / 3)))
    # The first may save the guest.
    for number in $(seq 0 "$count"); do
        from=$(date +%s%N)
        if timeout 120 "$nearmiss" trace --no-trace --no-curve --no-stacks --no-heap --memory 512MiB --cpus "$cpus" \
            -m xeon-mp-4way-l3 --runs "$scratch/runs" -- "$scratch/random" >"$scratch/out" 2>"$scratch/err" &&
            grep -q '"restored":true' "$scratch"/runs/*/manifest.json &&
            [ "$(grep -Ec '^(at-random|urandom) ' "$scratch/out")" = 2 ]; then
            [ "$number" = 0 ] || good=$((good + 1))
            grep -E '^(at-random|urandom) ' "$scratch/out" >>"$scratch/all"
        else
            failed=$((failed + 1))
            echo "$cpus CPUs, recording $number failed:"
            tail -n 5 "$scratch/err"
        fi
        [ "$number" = 0 ] || echo "$from $(date +%s%N)" | awk '{ printf "%.2f\n", ($2 - $1) / 1e9 }' >>"$scratch/times"
        rm -rf "$scratch/runs"
    done
    sort -n "$scratch/times" | awk -v cpus="$cpus" -v good="$good" '
        { time[NR] = $1 }
        END { printf "%4d %8d %7d %8.2f %8.2f %8.2f\n", cpus, good, NR - good, time[1], time[int((NR + 1) / 2)], time[NR] }'
done
numbers=$(wc -l <"$scratch/all")
apart=$(cut -d ' ' -f 2 "$scratch/all" | sort -u | wc -l)
echo "$numbers random numbers of 16 bytes, $apart of them different"
[ "$failed" = 0 ] && [ "$numbers" = "$apart" ] || { echo "failed: $failed recordings"; exit 1; }
echo "no recording failed, and no two guests share a random number"
