#!/bin/sh
# Runs a command beside busy loops, and prints the load that it met with.
# Usage: scripts/beside.sh LOOPS COMMAND [ARGUMENT ...]
set -u
loops=${1:?usage: scripts/beside.sh LOOPS COMMAND [ARGUMENT ...]}
shift
busy=
trap 'kill $busy 2>/dev/null' EXIT
trap 'exit 130' INT TERM
while [ "$loops" -gt 0 ]; do
    (while :; do :; done) &
    busy="$busy $!" loops=$((loops - 1))
done
"$@"
status=$?
echo "beside busy loops$busy, load averages at the end: $(cut -d ' ' -f 1-3 /proc/loadavg)" >&2
exit "$status"
