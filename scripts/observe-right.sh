#!/bin/bash
# Holds the totals of `nearmiss observe` against independent sources in the same run; ends with 1 when one is off by
# more than its tolerance. Needs root, perf, strace, bpftrace. Usage: scripts/observe-right.sh [path of nearmiss]
set -u
cd "$(dirname "$0")/.."
N=${1:-target/release/nearmiss}
N=$(realpath "$N")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

field() { /usr/bin/python3 -c 'import json,sys; o=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

# name, ours, theirs, tolerance in percent, why that tolerance
compare() {
    awk -v what="$1" -v ours="$2" -v theirs="$3" -v limit="$4" -v why="$5" 'BEGIN {
        off = theirs ? (ours - theirs) * 100 / theirs : (ours ? 100 : 0)
        good = off <= limit && off >= -limit
        printf "%-44s %16.0f %16.0f %+8.2f%%  (%s%%: %s)%s\n", what, ours, theirs, off, limit, why, good ? "" : "  OFF"
        exit !good
    }' || bad=1
}

observed() { "$N" observe --runs "$work/runs" --json "$work/o.json" "$@" >"$work/out" 2>"$work/err"; }

printf '%-44s %16s %16s %9s\n' "what" "nearmiss" "the other" "off"

observed --clock -- perf stat -x, -e cpu-clock -o "$work/stat" target/subjects/known-miss-site --size 64K --steps 8000000
compare "clock samples, ns / perf stat cpu-clock" \
    "$(field "$work/o.json" 'sum(s["weight"] for s in o["profile"]["samples"])')" \
    "$(awk -F, '/cpu-clock/ { print $1 * 1e6 }' "$work/stat")" 3 "perf's own start; one period a CPU"

# Not on a load that switches often: perf's clock stops while perf itself switches its counters, the task's account does not.
observed --sched -- perf stat -x, -e task-clock -o "$work/stat" target/subjects/known-miss-site --size 64K --steps 8000000
compare "CPU time of all tasks, ns / perf stat task-clock" "$(field "$work/o.json" 'sum(t["cpu_ns"] for t in o["tasks"])')" \
    "$(awk -F, '/task-clock/ { print $1 * 1e6 }' "$work/stat")" 3 "perf's own start and end"
observed --sched -- perf stat -x, -e context-switches -o "$work/stat" perf bench sched messaging -g 4 -l 200
compare "switches of all tasks / perf stat" "$(field "$work/o.json" 'sum(t["voluntary"] + t["involuntary"] for t in o["tasks"])')" \
    "$(awk -F, '/context-switches/ { print $1 }' "$work/stat")" 3 "perf's own; each task's last one"

observed --event page-faults@1 --stacks none -- perf stat -x, -e page-faults:u -o "$work/stat" target/subjects/known-miss-site --steps 1000
compare "page-fault samples / the subject's own count" \
    "$(field "$work/o.json" 'sum(1 for s in o["profile"]["samples"] if o["profile"]["frames"][o["profile"]["stacks"][s["stack"]][0]]["function"]=="touch")')" \
    "$(sed -n 's/.*faults=\([0-9]*\).*/\1/p' "$work/out")" 1 "each page once"

observed --polls -- strace -f -c -e trace=poll -o "$work/strace" target/subjects/known-poll-rate --calls 400
compare "poll calls / strace -c" "$(field "$work/o.json" 'sum(p["calls"] for p in o["polls"] if p["call"]=="poll")')" \
    "$(awk '$NF == "poll" { print $4 }' "$work/strace")" 0 "every call"

observed --locks -- target/subjects/known-lock-wait --times 300
compare "futex wait, ns / the waiter's own clock" "$(field "$work/o.json" 'o["locks"][0]["total_ns"]')" \
    "$(sed -n 's/.*waited_ns=\([0-9]*\).*/\1/p' "$work/out")" 5 "the way into the kernel and out; the way from waking to a CPU"

mounted=
if ! [ -e /sys/kernel/tracing/events/lock/contention_begin ]; then
    mount -t tracefs none /sys/kernel/tracing && mounted=yes
fi
if perf lock record -o "$work/lock" true >/dev/null 2>&1; then
    observed --locks -- perf lock record -o "$work/lock" -- perf bench sched messaging -g 4 -l 200
    perf lock contention -i "$work/lock" >"$work/contention" 2>&1
    compare "kernel lock waits / perf lock contention" \
        "$(field "$work/o.json" 'sum(l["count"] for l in o["locks"] if l["process"] is None)')" \
        "$(awk '$1 ~ /^[0-9]+$/ { n += $1 } END { print n + 0 }' "$work/contention")" 10 "perf's own locks; waits under way at the ends"
else
    echo "skipped: perf lock contention cannot record here"
fi

cat >"$work/block.bt" <<'B'
tracepoint:block:block_rq_issue /args->nr_sector > 0/ { @start[args->dev, args->sector] = nsecs; }
tracepoint:block:block_rq_complete /@start[args->dev, args->sector]/ {
    @n = count(); @ns = sum(nsecs - @start[args->dev, args->sector]); delete(@start[args->dev, args->sector]); }
END { clear(@start); }
B
if command -v bpftrace >/dev/null; then
    # Many requests, so that the few at the ends of the windows weigh little, and long ones beside the two programs.
    (sleep 3; dd if=/dev/zero of="$work/file" bs=1M count=600 oflag=direct 2>/dev/null ||
        dd if=/dev/zero of="$work/file" bs=1M count=200 conv=fsync 2>/dev/null) &
    bpftrace -o "$work/block" -c "$N observe --runs $work/runs --json $work/o.json -a --io --for 8s" "$work/block.bt" >/dev/null 2>&1
    wait
    compare "block requests / bpftrace" "$(field "$work/o.json" 'sum(i["count"] for i in o["io"] if i["bytes"])')" \
        "$(awk '/^@n:/ { print $2 }' "$work/block")" 5 "requests under way at the ends; merged ones keep their first sector"
    compare "time in the device, ns / bpftrace" "$(field "$work/o.json" 'sum(i["device_ns"] for i in o["io"] if i["bytes"])')" \
        "$(awk '/^@ns:/ { print $2 }' "$work/block")" 5 "two programs read the clock one after the other"
else
    echo "skipped: no bpftrace"
fi
[ -z "$mounted" ] || umount /sys/kernel/tracing
echo "$(nproc) CPUs, kernel $(uname -r), load average $(cut -d' ' -f1-2 /proc/loadavg), $(date -u +%Y-%m-%d)"
exit $bad
