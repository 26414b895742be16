#!/bin/sh
# Kills labs of 60 cells at 200 random instants (or KILLS of them), and holds each to an unbroken one: every cell once,
# nothing half-written, the same figures, no loop device, mount or process left. Run as root from the repository's root:
# without root no cell makes a file system.
set -eu
NEARMISS_LAB_KILLS=${KILLS:-200} cargo test --profile checks -q -p nearmiss-cli --test commands lab_kill -- --nocapture
