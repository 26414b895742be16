#!/bin/bash
# Prints what each instrument of `nearmiss observe` costs a compute, a lock-and-scheduler and a system-call load,
# interleaved with no instrument and with perf record at the same rate. CPU time of the load itself (user + system),
# median of the ratios to the uninstrumented run before it. Needs root and perf.
# Usage: scripts/observe-cheap.sh [rounds] [path of nearmiss]
set -u
cd "$(dirname "$0")/.."
rounds=${1:-7}
N=$(realpath "${2:-target/release/nearmiss}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/load.sh" <<'L'
#!/bin/bash
TIMEFORMAT='%U %S'
{ time "$@" >/dev/null 2>&1; } 2>"$LOAD_TIME"
L
chmod +x "$work/load.sh"

loads=("target/subjects/known-miss-site --size 64K --steps 8000000" "perf bench sched messaging -g 5 -l 400" "perf bench syscall basic --loop 3000000")
names=(compute messaging syscalls)
instruments=(none --clock --locks --polls --io --sched all perf-fp perf-dwarf)

cost() { # instrument, load...
    local how=$1
    shift
    export LOAD_TIME=$work/time
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

printf '%-10s' load
printf ' %11s' "${instruments[@]:1}"
echo
for i in "${!loads[@]}"; do
    read -ra load <<<"${loads[$i]}"
    rm -f "$work"/ratio-*
    for ((r = 0; r < rounds; r++)); do
        for how in "${instruments[@]:1}"; do
            base=$(cost none "${load[@]}")
            with=$(cost "$how" "${load[@]}")
            awk -v a="$base" -v b="$with" 'BEGIN { print (b / a - 1) * 100 }' >>"$work/ratio-$how"
        done
    done
    printf '%-10s' "${names[$i]}"
    for how in "${instruments[@]:1}"; do
        sort -g "$work/ratio-$how" | awk '{ v[NR] = $1 } END { printf " %+10.1f%%", v[int((NR + 1) / 2)] }'
    done
    echo
done
echo "median of $rounds ratios, CPU time of the load; $(nproc) CPUs, kernel $(uname -r), load average $(cut -d' ' -f1 /proc/loadavg)"
