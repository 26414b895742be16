#!/usr/bin/env python3
"""Wrong homes, own homes, what a rehearsal predicts, and what a recording under `apply local` counts.

Run from the repository's root after `make build`: experiments/local/homes.py
Ends with status 1 if the readers' remote share is not 45 to 50% with wrong homes, or not under 1% with own homes, if own
homes save less than 35% of the readers' cycles, or if the prediction is more than 10% off.
"""

import json, os, subprocess, sys, tempfile

from nodes import MACHINE, NEARMISS, SUBJECTS, cpu, figures, reads, recorded, tasks

PROGRAM = f"{SUBJECTS}/wrong-homes"
# Pages on another node take longer to write first, so homes pay where pages are read often.
OFTEN = [PROGRAM, "--rounds", "12"]


def readers(model):
    """The threads that only read, by their numbers: the first one also writes the table."""
    return sorted(tasks(model, "wrong-homes"), key=lambda task: task["tid"])


def report(what, model):
    rows = readers(model)
    shares = [100 * row["user"]["bus"]["read_remote"] / max(reads(row["user"]["bus"]), 1) for row in rows]
    remote, all_reads, user, everything = figures(model, "wrong-homes")
    print(f"{what}: r {remote:,} of {all_reads:,} bus reads of user mode; by thread {', '.join(f'{s:.0f}%' for s in shares)}; "
          f"cycles {user / 1e6:.1f} M in user mode, {everything / 1e6:.1f} M in all", flush=True)
    return remote, all_reads, user, everything


def window(*options):
    """The threads' reading alone: what wrote the table is left out."""
    return recorded([PROGRAM, *options], "--from", "mark:1", "--until", "mark:2")


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        good = True
        wrong = report("wrong homes, while the threads read", window())
        own = report("own homes, while the threads read  ", window("--own"))
        share = wrong[0] / wrong[1]
        saved = 1 - own[2] / wrong[2]
        good &= 0.45 <= share <= 0.50 and own[0] / own[1] < 0.01 and saved >= 0.35
        print(f"r {share:.1%} (wanted 45 to 50%) and {own[0] / own[1]:.2%} (under 1%); own homes save {saved:.1%} of the "
              "cycles (wanted 35%)")
        subprocess.run([NEARMISS, "trace", "-q", "-m", MACHINE, "--cpus", "4", "--", *OFTEN], check=True,
                       stdout=subprocess.DEVNULL)
        found = json.loads(subprocess.run([NEARMISS, "diagnose", "--json"], check=True, capture_output=True).stdout)
        finding = next(f for f in found["findings"] if f["remedy"] == "local")
        before = finding["prediction"]["modelled_cycles"]
        gain = finding["prediction"]["gain"]
        words = finding["apply"]
        print(f"diagnose: {' '.join(words[2:words.index('--')])} saves {gain:.1%} of {before / 1e6:.1f} M cycles (predicted)")
        apply = [NEARMISS, *words[1:]]
        # nearmiss starts both: the first instructions of its child count as the program's.
        plain = report("recorded without", recorded([NEARMISS, "launch-in-the-guest", *OFTEN]))
        under = report("recorded under apply", recorded(apply))
        predicted = plain[3] - gain * before
        off = under[3] / predicted - 1
        good &= abs(off) <= 0.10
        print(f"predicted {predicted / 1e6:.1f} M, recorded {under[3] / 1e6:.1f} M: {off:+.1%} (wanted within 10%)")
        sys.exit(0 if good else 1)


main()
