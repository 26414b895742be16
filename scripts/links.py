#!/usr/bin/env python3
"""Checks the documents' links: each leads to a file, each anchor to a heading, and docs/SUMMARY.md lists every page.

Usage: scripts/links.py        (status 1, and a line for each fault)
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def documents():
    """Every document of the repository: those that git lists, or all files where there is no git."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, check=False,
                            capture_output=True, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else []
    pages = [ROOT / name for name in names] or [page for page in ROOT.rglob("*.md") if "target" not in page.parts]
    return [page for page in pages if page.exists()]


def prose(text):
    """A document without its code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.S))


def anchors(page):
    """The anchors of a page's headings, as GitHub and mdbook make them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    heads = re.findall(r"^#+ +(.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower().replace("`", "")).replace(" ", "-") for head in heads}


def faults(page):
    text = page.read_text()
    links = LINK.findall(re.sub(r"`([^`\n]*)`", "", re.sub(r"```.*?```", "", text, flags=re.S)))
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: {link}: no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{page.relative_to(ROOT)}: {link}: no such heading"


def unlisted():
    """Pages that the site's list lacks."""
    summary = ROOT / "docs/SUMMARY.md"
    listed = {(summary.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(summary.read_text()))}
    pages = [page for page in documents() if summary.parent in page.parents and page != summary]
    return [f"docs/SUMMARY.md: lacks {page.relative_to(ROOT)}" for page in pages if page.resolve() not in listed]


def main():
    wrong = [fault for page in documents() for fault in faults(page)] + unlisted()
    print("\n".join(wrong) or "every link leads somewhere")
    sys.exit(1 if wrong else 0)


main()
