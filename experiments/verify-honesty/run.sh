#!/bin/sh
# Counts the verdicts of A = A and of A against 3% more of it. Run from the repository's root.
set -eu
RUNS=${RUNS:-100}
SECONDS_EACH=${SECONDS_EACH:-3}
make -s -C subjects
cargo build --release -q -p nearmiss-verify --example repeat-verdict
walk="target/subjects/aligned-tasks --objects 64 --colors 1"
repeat() {
	target/release/examples/repeat-verdict "$RUNS" "$SECONDS_EACH" "$1" "$2" | tail -n 1
}
echo "A = A:        $(repeat "$walk --visits 6000000" "$walk --visits 6000000")"
echo "A against 3%: $(repeat "$walk --visits 6000000" "$walk --visits 6180000")"
