#!/usr/bin/env python3
"""Why gzip and zstd gain nothing from copies past the caches: how much of what they copy is read soon.

    experiments/bypass/soon.py [--bytes 1000000] [--machine zen3-milan] [--nearmiss BINARY]

Each program compresses the same file under `nearmiss diagnose --all`. Modelled, of each site that copies: what it
copies, the share of the written lines that is read while a cache still has them, and what the site alone past the caches would gain.
"""

import argparse, json, os, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMANDS = {"gzip": ["gzip", "-1", "-c", "blob"], "zstd": ["zstd", "-q", "-3", "-c", "blob"]}


def value(cell):
    """A cell of a record is an object of one member, which names its unit."""
    return next(iter(cell.values())) if isinstance(cell, dict) else cell


def copies(nearmiss, machine, command, place):
    words = [nearmiss, "diagnose", "--all", "--json", "-m", machine, "--only", "user", "--", *command]
    done = subprocess.run(words, cwd=place, check=True, capture_output=True, text=True)
    tables = [table for finding in json.loads(done.stdout)["findings"] if finding["remedy"] == "bypass"
              for table in finding["evidence"]["tables"] if table["title"] == "copies"]
    return [dict(zip(table["columns"], map(value, row))) for table in tables for row in table["rows"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000, help="of this binary are compressed")
    parser.add_argument("--machine", default="zen3-milan")
    parser.add_argument("--nearmiss", default=f"{ROOT}/target/release/nearmiss")
    chosen = parser.parse_args()
    nearmiss = os.path.abspath(chosen.nearmiss)
    print(f"modelled on {chosen.machine}: {chosen.bytes:,} bytes of a program, compressed")
    with tempfile.TemporaryDirectory() as place:
        with open(nearmiss, "rb") as source, open(f"{place}/blob", "wb") as target:
            target.write(source.read(chosen.bytes))
        for name, command in COMMANDS.items():
            print(f"\n{' '.join(command)}")
            for row in copies(nearmiss, chosen.machine, command, place):
                print(f"  {row['site']:44} {row['copies']:>10,} copies {row['bytes']:>12,} bytes, "
                      f"read soon {row['read soon']:5.0%}, alone past the caches {row['gain alone']:+6.1%}")


if __name__ == "__main__":
    main()
