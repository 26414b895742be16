#!/bin/bash
# Prints what each instrument of `nearmiss observe` costs a compute, a lock-and-scheduler and a system-call load,
# interleaved with no instrument and with perf record at the same rate. CPU time of the load itself (user + system),
# median of the ratios to the uninstrumented run beside it, with the middle half of them. Then what a traced call costs,
# and one that is not. Needs root and perf.
# Usage: scripts/observe-cheap.sh [rounds] [path of nearmiss]
set -u
cd "$(dirname "$0")/.."
rounds=${1:-5}
N=$(realpath "${2:-target/release/nearmiss}")
if [ "$(id -u)" != 0 ] || ! command -v perf >/dev/null; then
    echo "skipped: what the instruments cost: needs root and perf (apt-get install linux-perf)"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/load.sh" <<'L'
#!/bin/bash
TIMEFORMAT='%U %S'
{ time "$@" >/dev/null 2>&1; } 2>"$LOAD_TIME"
L
chmod +x "$work/load.sh"
export LOAD_TIME=$work/time

loads=("target/subjects/known-miss-site --size 64K --steps 8000000" "perf bench sched messaging -g 5 -l 400" "perf bench syscall basic --loop 3000000")
names=(compute messaging syscalls)
instruments=(--clock --locks --polls --io --sched all perf-fp perf-dwarf)

cost() { # instrument, load...: seconds
    local how=$1
    shift
    case $how in
        none) "$work/load.sh" "$@" ;;
        all) "$N" observe --runs "$work/runs" -- "$work/load.sh" "$@" ;;
        perf-fp) perf record -q -F 499 -e cpu-clock -g -o "$work/perf" -- "$work/load.sh" "$@" ;;
        perf-dwarf) perf record -q -F 499 -e cpu-clock --call-graph dwarf,8192 -o "$work/perf" -- "$work/load.sh" "$@" ;;
        *) "$N" observe "$how" --runs "$work/runs" -- "$work/load.sh" "$@" ;;
    esac >/dev/null 2>&1
    awk '{ print $1 + $2 }' "$work/time"
    rm -rf "$work/runs"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { print (b / a - 1) * 100 }'; }

# Median and quartiles of the numbers of a file, with a unit.
spread() {
    sort -g "$1" | awk -v unit="$2" '{ v[NR] = $1 } END {
        printf "%+.1f%s (%+.1f to %+.1f)", v[int((NR + 1) / 2)], unit, v[int((NR + 3) / 4)], v[int((3 * NR + 1) / 4)] }'
}

echo "slow-down by instrument, measured; perf-fp and perf-dwarf: perf record at the same 499 Hz"
for i in "${!loads[@]}"; do
    read -ra load <<<"${loads[$i]}"
    rm -f "$work"/ratio-*
    for ((r = 0; r < rounds; r++)); do
        # Of every two instruments one runs after its base and one before it, so that a drift cancels out.
        for ((k = 0; k < ${#instruments[@]}; k += 2)); do
            first=$(cost "${instruments[$k]}" "${load[@]}")
            base=$(cost none "${load[@]}")
            second=$(cost "${instruments[$((k + 1))]}" "${load[@]}")
            ratio "$base" "$first" >>"$work/ratio-${instruments[$k]}"
            ratio "$base" "$second" >>"$work/ratio-${instruments[$((k + 1))]}"
        done
    done
    for how in "${instruments[@]}"; do
        printf '%-10s %-11s %s\n' "${names[$i]}" "$how" "$(spread "$work/ratio-$how" %)"
    done
done

rm -f "$work"/ns-*
for ((r = 0; r < rounds; r++)); do
    "$N" observe --polls --runs "$work/runs" -- target/subjects/poll-loop >"$work/with" 2>"$work/said"
    target/subjects/poll-loop >"$work/base"
    rm -rf "$work/runs"
    for what in poll other; do
        awk -v what="${what}_ns=" '{ for (i = 1; i <= NF; i++) if (index($i, what) == 1) v[NR] = substr($i, length(what) + 1) }
            END { print v[2] - v[1] }' "$work/base" "$work/with" >>"$work/ns-$what"
    done
done
echo "under --polls a poll takes $(spread "$work/ns-poll" " ns") longer (goal: 250 ns), any other call $(spread "$work/ns-other" " ns") (goal: 0)"
tr '\n' ' ' <"$work/said" | grep -o 'polls: at [^,]*' | tr -s ' '

# The same on a kernel that takes BPF programs on functions: a guest's, whose clock counts instructions, two nanoseconds
# each.
guest() { "$N" trace -q --no-trace --only user --clock instructions -m zen3-milan --cpus 1 --memory 2GiB --runs "$work/runs" -- "$@" 2>/dev/null; }
if guest target/subjects/poll-loop --calls 20000 >"$work/base" &&
    guest "$N" observe --polls --runs /tmp/runs -- target/subjects/poll-loop --calls 20000 >"$work/with"; then
    awk '{ for (i = 1; i <= NF; i++) { n = split($i, part, "="); if (n == 2) v[FILENAME == ARGV[2], part[1]] = part[2] / 2 } }
        END { printf "on functions, in a guest (Linux 6.12): a traced poll executes %.0f instructions more (%.0f without), any other call %.1f (%.0f without)\n",
            v[1, "poll_ns"] - v[0, "poll_ns"], v[0, "poll_ns"], v[1, "other_ns"] - v[0, "other_ns"], v[0, "other_ns"] }' "$work/base" "$work/with"
fi
echo "$rounds rounds; $(nproc) CPUs, kernel $(uname -r), load average $(cut -d' ' -f1-2 /proc/loadavg), $(date -u +%Y-%m-%d)"
