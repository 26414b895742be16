#!/bin/sh
# Counts the verdicts of A = A, of A against 5% more of it, and of a remedy with nothing to act on.
# Run from the repository's root. TRIALS verdicts a row, each of at most SECONDS_EACH seconds; no verdict of a row
# begins after TOTAL seconds. The whole of it takes some four hours by default; TRIALS=12 SECONDS_EACH=20 some 20 minutes.
set -eu
TRIALS=${TRIALS:-50}
SECONDS_EACH=${SECONDS_EACH:-60}
TOTAL=${TOTAL:-3600}
make -s -C subjects
cargo build --release -q -p nearmiss-verify --example repeat-verdict
cargo build --release -q -p nearmiss-cli
walk="target/subjects/aligned-tasks --objects 64 --colors 1 --visits"
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "$(nproc) CPUs of $cpu, Linux $(uname -r), load average $(cut -d ' ' -f 1-3 /proc/loadavg); $(date +%F)"
echo "at most $TRIALS verdicts a row, $SECONDS_EACH s each (all measured)"
row() {
	printf '%-44s ' "$1"
	target/release/examples/repeat-verdict "$TRIALS" "$SECONDS_EACH" "$TOTAL" "$2" "$3" | tail -n 1
}
echo
echo "A = A: a gain or a loss is a false claim; at most 6 of 50, goal 1"
row "/bin/true" /bin/true /bin/true
row "walk, 200 thousand visits" "$walk 200000" "$walk 200000"
row "walk, 6 million visits" "$walk 6000000" "$walk 6000000"
echo
echo "B is 5% slower: found is a loss; at least 60%, goal 80%"
row "walk, 2 against 2.1 million visits" "$walk 2000000" "$walk 2100000"
row "walk, 20 against 21 million visits" "$walk 20000000" "$walk 21000000"
echo
echo "a remedy with nothing to act on: only \"nothing-to-act-on\" is right"
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
trial=0
while [ $trial -lt "$TRIALS" ]; do
	trial=$((trial + 1))
	target/release/nearmiss verify color --runs "$runs" --json --time-limit "${SECONDS_EACH}s" -- gzip -9 -c Cargo.lock
done | sed 's/.*"outcome":"\([a-z-]*\)".*/\1/' | sort | uniq -c
