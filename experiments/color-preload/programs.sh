#!/bin/sh
# Real programs under coloring do what they do without it. Bounded: some two minutes.
set -eu
APPLY=${APPLY:-$PWD/target/release/nearmiss apply color}
PYTHON=${PYTHON:-python3}
work=$(mktemp -d)
redis=
finish() {
	[ -z "$redis" ] || kill "$redis" 2>/dev/null || true
	wait
	rm -rf "$work"
}
trap finish EXIT

colored() {
	$APPLY --blocks 16k --stacks -- "$@"
}

# same NAME CMD...: the output with coloring is that without.
same() {
	name=$1
	shift
	"$@" >"$work/plain" 2>"$work/plain.err"
	colored "$@" >"$work/colored" 2>"$work/report"
	cmp "$work/plain" "$work/colored"
	echo "$name: same output; $(tail -n 1 "$work/report")"
}

if command -v sqlite3 >/dev/null; then
	cat >"$work/script.sql" <<'SQL'
PRAGMA cache_size=-20000; PRAGMA threads=4;
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100000)
  INSERT INTO t SELECT i, printf('%08x', i*2654435761 % 4294967296), zeroblob(i % 300) FROM n;
CREATE INDEX tb ON t(b);
DELETE FROM t WHERE a % 3 = 0;
UPDATE t SET c = zeroblob(9000) WHERE a % 1000 = 1;
SELECT count(*), sum(length(c)), min(b), max(b) FROM t;
SELECT b, count(*) FROM t GROUP BY substr(b, 1, 2) ORDER BY 1 LIMIT 20;
VACUUM;
PRAGMA integrity_check;
SQL
	same sqlite3 sqlite3 :memory: ".read $work/script.sql"
fi
seq 1 400000 | awk '{ print ($1 * 7919) % 1000003, $1 }' >"$work/numbers"
same sort env LC_ALL=C sort --parallel=4 -S 8M "$work/numbers"
same gzip gzip -9 -c "$work/numbers"

if command -v redis-server >/dev/null; then
	# Not by the function: $! would be a shell's, and the signal below would not reach the command.
	$APPLY --blocks 16k --stacks -- redis-server --port 0 --unixsocket "$work/redis" --save '' --enable-debug-command local --dir "$work" \
		>"$work/redis.out" 2>"$work/report" &
	redis=$!
	cli="redis-cli -s $work/redis"
	tries=0
	until $cli ping >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 100 ]
		sleep 0.1
	done
	redis-benchmark -s "$work/redis" --csv -n 20000 -d 5000 -r 500 -t set,get,lpush >"$work/benchmark" 2>&1
	$cli debug populate 20000 key 8192 >/dev/null
	[ "$($cli strlen key:777)" = 8192 ]
	$cli bgsave >/dev/null
	while [ "$($cli info persistence | tr -d '\r' | sed -n 's/^rdb_bgsave_in_progress://p')" = 1 ]; do sleep 0.1; done
	[ "$($cli info persistence | tr -d '\r' | sed -n 's/^rdb_last_bgsave_status://p')" = ok ]
	size=$($cli dbsize)
	$cli debug reload >/dev/null
	[ "$($cli dbsize)" = "$size" ]
	$cli shutdown nosave >/dev/null 2>&1 || true
	wait "$redis" || { echo "redis ended badly"; exit 1; }
	redis=
	echo "redis: benchmark, save in a forked child and $size keys right; $(tail -n 1 "$work/report")"
fi

if "$PYTHON" -c 'import test.test_threading' 2>/dev/null; then
	tests="test_threading test_mmap test_subprocess"
	# A test that this interpreter fails anyway shows nothing: the same must fail, and no other.
	failures() { sed -n 's/^\(FAIL\|ERROR\): //p' "$1" | sort -u; }
	"$PYTHON" -m test -v $tests >"$work/python.plain" 2>&1 || true
	colored "$PYTHON" -m test -v $tests >"$work/python" 2>&1 || true
	failures "$work/python.plain" >"$work/fail.plain"
	failures "$work/python" >"$work/fail.colored"
	grep -q 'Tests result' "$work/python" || { cat "$work/python"; exit 1; }
	cmp "$work/fail.plain" "$work/fail.colored" || { cat "$work/python"; exit 1; }
	total=$(grep '^Total tests' "$work/python" || grep '^== Tests result' "$work/python")
	echo "python: $tests: $total, the same $(wc -l <"$work/fail.plain") failing without; $(tail -n 1 "$work/python")"
else
	echo "skipped: $PYTHON has no tests of its own; install them or set PYTHON"
fi
