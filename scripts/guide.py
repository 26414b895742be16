#!/usr/bin/env python3
"""Runs the sessions in the guide and the README, and writes what they print into the pages.

Usage: scripts/guide.py [--check] [--nearmiss BINARY] [PAGE ...]    (README.md and docs/guide/*.md without pages)

A session is a block of ```console; each of its lines that begins with `$ ` is a command, and the lines behind it are what
it printed. Commands run in a fresh folder with `nearmiss`, `nearmiss-webload`, `subjects` (what `make subjects` built) and
`examples` in it. A comment on the line before the block changes that:

    <!-- guide: first=12 -->     keep 12 lines of each output, then `[...]`
    <!-- guide: labels=A,B -->   keep the paragraphs with these labels and those without any; `[...]` stands for the rest
    <!-- guide: by-hand WHY -->  the block needs what this script has not, such as a second terminal

--check runs the sessions and compares shapes: the words at the beginnings of lines, without figures. It changes nothing,
and ends with status 1 where a page shows what is no longer printed.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SESSION = re.compile(r"(?:<!-- guide: ([^\n]*) -->\n)?```console\n(.*?)```\n", re.S)
# How far a verb is goes to a terminal's last line and is no part of what it printed.
PROGRESS = re.compile(r"^nearmiss: (recording|running on|running the command|rehearsing|comparing|detecting|modelling)\b")
# Lines that a run has or has not, by how busy the machine is.
OPTIONAL = {"Note", "Waits", "Caution"}
LIMIT_S = 900


def sandbox(place, nearmiss):
    """The folder that commands run in, and its environment."""
    bin_ = place / ".bin"
    bin_.mkdir()
    (bin_ / "nearmiss").symlink_to(nearmiss)
    webload = ROOT / "target/release/nearmiss-webload"
    if not webload.exists():
        webload = pathlib.Path(nearmiss).parent / "nearmiss-webload"
    (bin_ / "nearmiss-webload").symlink_to(webload)
    for name, target in {"subjects": "target/subjects", "examples": "examples"}.items():
        (place / name).symlink_to(ROOT / target)
    return {**os.environ, "PATH": f"{bin_}:/usr/sbin:/usr/bin:/sbin:/bin", "COLUMNS": "80"}


def printed(command, place, environment):
    """What a command prints to both of its outputs, in the order of a terminal."""
    done = subprocess.run(["bash", "-c", command], cwd=place, env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    text = done.stdout.replace(f"{place}/", "").replace(f"{ROOT}/", "")
    lines = [line.rstrip() for line in text.splitlines()]
    lines = [line for line in lines if not PROGRESS.match(line)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def sessions(block):
    """The commands of a block, each with the lines that the page shows below it. A `\\` continues a command."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line], []))
        elif found and not found[-1][1] and found[-1][0][-1].endswith("\\"):
            found[-1][0].append(line)
        elif found:
            found[-1][1].append(line)
    return found


def shape(lines):
    """The first words of lines that begin at the margin: no figures, no paths."""
    heads = (re.sub(r"[0-9][0-9.,]*", "0", line).split("  ")[0].split(":")[0] for line in lines if line[:1].strip())
    return [" ".join(head.split()[:2]) for head in heads if head != "[...]"]


def of_labels(lines, labels):
    """The paragraphs whose label is listed, and those without one. A label ends where two blanks begin."""
    kept, keep = [], True
    for line in lines:
        label = re.match(r"([A-Z][\w ]{1,9}?)(?: {2,}|$)", line)
        if label:
            keep = label.group(1) in labels
        elif line and not line.startswith(" "):
            keep = True
        if keep and (line or kept[-1:] != ["[...]"]):
            kept.append(line)
        elif line and kept[-1:] != ["[...]"]:
            kept.append("[...]")
    return kept


def shortened(lines, option):
    """What a page shows of an output."""
    if option.startswith("labels="):
        return of_labels(lines, option.removeprefix("labels=").split(","))
    most = int(option.removeprefix("first=")) if option.startswith("first=") else len(lines)
    return lines if len(lines) <= most else lines[:most] + ["[...]"]


def differences(page, command, shown, fresh):
    have = set(shape(fresh))
    missing = [head for head in shape(shown) if head not in have and head not in OPTIONAL]
    return [f"{page}: {command}: no longer prints {head!r}" for head in missing]


def redone(page, check, nearmiss):
    """The page's text with fresh outputs, and what differs in shape."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="guide-") as name:
        place = pathlib.Path(name)
        environment = sandbox(place, nearmiss)

        def again(found):
            option, block = found.group(1) or "", found.group(2)
            if option.startswith("by-hand"):
                return found.group(0)
            parts = []
            for command, shown in sessions(block):
                text = "\n".join(command)
                print(f"{page}: {text}", file=sys.stderr, flush=True)
                fresh = printed(text[2:], place, environment)
                wrong.extend(differences(page, text, shown, fresh))
                parts.extend([*command, *shortened(fresh, option)])
            head = f"<!-- guide: {option} -->\n" if option else ""
            return head + "```console\n" + "\n".join(parts) + "\n```\n"

        text = SESSION.sub(again, (ROOT / page).read_text())
    if not check:
        (ROOT / page).write_text(text)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--nearmiss", default=str(ROOT / "target/release/nearmiss"))
    parser.add_argument("pages", nargs="*")
    given = parser.parse_args()
    pages = given.pages or ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs/guide").glob("*.md"))]
    wrong = [line for page in pages for line in redone(page, given.check, str(pathlib.Path(given.nearmiss).resolve()))]
    if given.check:
        print("\n".join(wrong) or "every session prints what its page shows")
    sys.exit(1 if given.check and wrong else 0)


if __name__ == "__main__":
    main()
