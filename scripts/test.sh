#!/bin/sh
# Runs every test of the workspace and ends with one line in the runner's form, summed over its test binaries.
# Usage: scripts/test.sh [arguments of cargo test]
set -u
cd "$(dirname "$0")/.."
mkdir -p target
log=target/test.log
status=$(mktemp)
trap 'rm -f "$status"' EXIT INT TERM

# A guest's start waits more than it computes: one test more than CPUs keeps them busy.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(nproc) + 1))}"

# sh has no pipefail: the exit status goes round the pipe by a file.
{ ${CARGO:-cargo} test --profile checks --workspace --no-fail-fast "$@" 2>&1; echo $? >"$status"; } | tee "$log"
code=$(cat "$status")

awk -v code="$code" '
    /^test result:/ { passed += $4; failed += $6; ignored += $8 }
    END {
        verdict = code == 0 && failed == 0 ? "ok" : "FAILED"
        printf "test result: %s. %d passed; %d failed; %d ignored\n", verdict, passed, failed, ignored
    }' "$log"
exit "$code"
