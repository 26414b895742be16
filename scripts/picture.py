#!/usr/bin/env python3
"""Writes docs/pictures/report.svg: the head of a real report, as a terminal shows it, light or dark as the reader is.

Usage: scripts/picture.py [--run RUN] [--nearmiss BINARY] [--lines N]

Without --run, traces `aligned-tasks` (a run queue as Linux 2.4 had it) on the model of a Pentium Pro, which takes some
seconds after `make build`. The picture holds what `nearmiss report RUN` prints, line by line, and nothing else.
"""
import argparse
import html
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CELL, LINE, MARGIN = 7.8, 18, 16
STYLE = """
svg { --bg: #f6f8fa; --fg: #1c2128; --bar: #1f6feb; --word: #a40e26; --edge: #d0d7de }
@media (prefers-color-scheme: dark) {
  svg { --bg: #161b22; --fg: #e6edf3; --bar: #58a6ff; --word: #ffa198; --edge: #30363d }
}
rect.page { fill: var(--bg); stroke: var(--edge) }
rect.bar { fill: var(--bar) }
text { fill: var(--fg); font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre }
tspan.word { fill: var(--word); font-weight: bold }
"""
# The words that say where a figure comes from stand out, as they are the point of a report.
ORIGIN = re.compile(r"\b(Modelled|Measured|Predicted)\b")


def recorded(nearmiss, place):
    """A fresh run of the demonstration's first command."""
    command = [nearmiss, "trace", "-q", "-m", "pentium-pro-4way-512k", "--cpus", "2", "--runs", place, "--",
               "target/subjects/aligned-tasks", "--objects", "1024", "--visits", "300000"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return next(pathlib.Path(place).iterdir())


def drawn_line(number, line):
    """A line of the report: its text, and its bars as rectangles so that no font leaves gaps in them."""
    top = MARGIN + number * LINE
    parts = [f'<rect class="bar" x="{MARGIN + run.start() * CELL:.1f}" y="{top + 4}" width="{len(run.group()) * CELL:.1f}" '
             f'height="{LINE - 6}"/>' for run in re.finditer("█+", line)]
    text = html.escape(line.replace("█", " ").rstrip(), quote=False)
    if text.strip():
        text = ORIGIN.sub(r'<tspan class="word">\1</tspan>', text)
        length = len(line.replace("█", " ").rstrip()) * CELL
        parts.append(f'<text x="{MARGIN}" y="{top + LINE - 5}" textLength="{length:.1f}" xml:space="preserve">{text}</text>')
    return parts


def picture(lines):
    width = 2 * MARGIN + max(map(len, lines)) * CELL
    height = 2 * MARGIN + len(lines) * LINE
    title = html.escape("nearmiss report: " + " ".join(lines[0].split()))
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
            f'height="{height}" role="img" aria-label="{title}">')
    page = f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1}" rx="6"/>'
    body = [part for number, line in enumerate(lines) for part in drawn_line(number, line)]
    return "\n".join([head, f"<style>{STYLE}</style>", page, *body, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run")
    parser.add_argument("--nearmiss", default=str(ROOT / "target/release/nearmiss"))
    parser.add_argument("--lines", type=int, default=36, help="lines of the report that are shown, at most")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = given.run or recorded(given.nearmiss, place)
        text = subprocess.run([given.nearmiss, "report", str(run)], check=True, capture_output=True, text=True).stdout
    # A picture ends with a whole table, not in the middle of one.
    shown = text.splitlines()[:given.lines]
    while shown and shown[-1].strip():
        shown.pop()
    lines = [line.replace(str(ROOT) + "/", "") for line in shown]
    while lines and not lines[-1].strip():
        lines.pop()
    target = ROOT / "docs/pictures/report.svg"
    target.parent.mkdir(exist_ok=True)
    target.write_text(picture(lines))
    print(f"{target.relative_to(ROOT)}: {len(lines)} lines of {run}")


main()
