#!/bin/sh
# The demonstration: a run queue as Linux 2.4 had it, and a Debian program, traced on the whole machine and modelled.
# Usage: scripts/run-demo.sh    (after make build)
set -eu
cd "$(dirname "$0")/.."
nearmiss=target/release/nearmiss
words=$(mktemp)
trap 'rm -f "$words"' EXIT INT TERM

heading() { printf '\n=== %s\n\n' "$*"; }

heading "nearmiss trace -m pentium-pro-4way-512k --cpus 2 -- aligned-tasks"
$nearmiss trace -m pentium-pro-4way-512k --cpus 2 -- target/subjects/aligned-tasks --objects 1024 --visits 300000
page=$($nearmiss report --html)

heading "nearmiss trace --cpus 2 -- sort  (this machine's caches)"
awk 'BEGIN { srand(1); for (i = 0; i < 60000; i++) printf "%08x%08x\n", rand() * 4294967295, rand() * 4294967295 }' >"$words"
$nearmiss trace --cpus 2 -- sort -o /dev/null "$words"
page2=$($nearmiss report --html)

heading "nearmiss rehearse color  (the run queue on the Pentium Pro, in other colors)"
$nearmiss rehearse color "${page%/*}" --colors 8,32

heading "nearmiss diagnose -- aligned-tasks  (the same run queue on this machine's caches)"
$nearmiss diagnose --cpus 2 -- target/subjects/aligned-tasks --objects 1024 --visits 300000
run=nearmiss-runs/$(ls -t nearmiss-runs | head -n 1)
page3=$($nearmiss report --html "$run")
# As many colors as were recommended.
colors=$(grep -o '"apply","color","--colors","[0-9]*"' "$run/findings.json" | head -n 1 | tr -cd 0-9)

heading "nearmiss apply color -- aligned-tasks"
$nearmiss apply color --colors "${colors:-32}" -- target/subjects/aligned-tasks --objects 1024 --visits 4000000

heading "nearmiss verify color -- aligned-tasks"
# On a machine whose caches nothing crowds there is no prediction to stand beside what is measured.
$nearmiss verify color --colors "${colors:-32}" --time-limit 15s --metric 'ns_per_visit ([0-9.]+)' \
    ${colors:+--against "$run"} -- target/subjects/aligned-tasks --objects 1024 --visits 4000000

heading "pages to open in a browser"
echo "$page"
echo "$page2"
echo "$page3   (with the findings)"
