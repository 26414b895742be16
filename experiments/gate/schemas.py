#!/usr/bin/env python3
"""Validates what a gate writes against the published schemas: SARIF, JUnit XML, and the workflows of the guide.

Needs the packages check-jsonschema and lxml of PyPI, and two schemas that their projects publish:
  sarif-2.1/schema/sarif-schema-2.1.0.json   of oasis-tcs/sarif-spec
  junit-10.xsd                               of jenkinsci/xunit-plugin
Run from the repository's root after `make build`: experiments/gate/schemas.py SARIF-SCHEMA JUNIT-XSD
Prints a line for each file. Status 1: one is not valid.
"""

import os, re, subprocess, sys, tempfile

from lxml import etree

NEARMISS = os.path.abspath(os.environ.get("NEARMISS", "target/release/nearmiss"))
GUIDE = "docs/guide/ci.md"
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    volatile long *numbers = malloc(8000000);
    long sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 1000000; i += 8)
            sum += numbers[i];
    printf("%ld\\n", sum);
}
"""


def json_errors(file, *schema):
    done = subprocess.run([sys.executable, "-m", "check_jsonschema", *schema, file], capture_output=True, text=True)
    return done.stdout if done.returncode else ""


def gates(place):
    """A gate that passes and one that fails; yields the files that they write."""
    for rounds in 4, 6:
        subprocess.run(["cc", "-g", "-O1", f"-DROUNDS={rounds}", "-x", "c", "-", "-o", f"{place}/p{rounds}"], input=PROGRAM, text=True, check=True)
    run = lambda *words: subprocess.run([NEARMISS, "gate", *words], cwd=place, capture_output=True, text=True).returncode
    assert run("--write", "base.json", "--", "./p4") == 0
    for rounds, expected in (4, 0), (6, 1):
        status = run("--against", "base.json", "--junit", f"{rounds}.xml", "--sarif", f"{rounds}.sarif", "--", f"./p{rounds}")
        assert status == expected, status
        yield f"{place}/{rounds}.xml", f"{place}/{rounds}.sarif"


def main():
    sarif, junit = sys.argv[1:]
    junit, guide, failed = etree.XMLSchema(etree.parse(junit)), open(GUIDE).read(), 0
    with tempfile.TemporaryDirectory() as place:
        checked = []
        for xml, log in gates(place):
            valid = junit.validate(etree.parse(xml))
            checked += [(xml, "" if valid else str(junit.error_log)), (log, json_errors(log, "--schemafile", sarif))]
        for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", guide, re.S)):
            file = f"{place}/{GUIDE.replace('/', '-')}-{number}.yml"
            with open(file, "w") as out:
                out.write(text)
            kind = "github-workflows" if re.search("^on:", text, re.M) else "gitlab-ci"
            checked.append((file, json_errors(file, "--builtin-schema", f"vendor.{kind}")))
    for file, errors in checked:
        print(f"{os.path.basename(file)}: {'not valid: ' + errors if errors else 'valid'}")
        failed |= bool(errors)
    sys.exit(int(failed))


main()
