#!/bin/sh
# Makes a virtual environment of Python with the packages that only tests use, and prints its interpreter.
# Installs nothing outside it. Usage: scripts/setup-python.sh
#
# It lies in ${XDG_CACHE_HOME:-~/.cache}/nearmiss/python. mcp: a client of the Model Context Protocol from another hand.
set -eu

place=${XDG_CACHE_HOME:-$HOME/.cache}/nearmiss/python
packages='mcp>=2,<3'
fail() { echo "setup-python: $*" >&2; exit 1; }

if ! "$place/bin/python3" -c 'import mcp' 2>/dev/null; then
    python3 -m venv --clear "$place" || fail "no virtual environment: apt-get install python3-venv"
    "$place/bin/python3" -m pip install -q "$packages" >&2 || fail "$packages: not installed; without a network, its test is skipped"
fi
echo "$place/bin/python3"
