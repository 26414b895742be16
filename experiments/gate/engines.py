#!/usr/bin/env python3
"""One baseline under several emulators, and on another processor: does `nearmiss gate` judge alike?

Run from the repository's root after `make build` and `scripts/setup-engines.sh`: experiments/gate/engines.py
The baseline of each program is written under QEMU 7.2. The same program, and one with a planted regression, are then
judged under 7.2, 10.0 and 11.1, and under 7.2 with a guest's processor that lacks what later ones have (AVX, BMI and more),
for which the C library chooses other functions. Prints each verdict with the most that figures of user mode and of the
kernel differ from the baseline beyond their noise. Ends with status 1 if the same program fails or the regression passes
on one of the emulators; the restricted processor is printed alone. All figures are modelled.
"""

import json, os, subprocess, sys, tempfile

from gated import NEARMISS, cpu

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
ENGINES = [f"{CACHE}/nearmiss/engines/{version}/bin/qemu-system-x86_64" for version in ("7.2", "10.0", "11.1")]
RESTRICTED = ",-avx,-avx2,-bmi1,-bmi2,-fma,-f16c,-movbe,-sse4.1,-sse4.2,-ssse3,-popcnt,-aes,-pclmulqdq,-xsave"
# A figure of fewer events says little in shares.
LEAST_EVENTS = 1000


def restricted(engine, place):
    """A program that starts the emulator with a processor that has less."""
    program = f"{place}/restricted/qemu-system-x86_64"
    os.makedirs(os.path.dirname(program))
    os.symlink(os.path.join(os.path.dirname(engine), "virtiofsd"), os.path.join(os.path.dirname(program), "virtiofsd"))
    with open(program, "w") as file:
        file.write('#!/bin/bash\nwords=()\nfor word in "$@"; do\n'
                   f'    case $word in max,*) word="$word{RESTRICTED}" ;; esac\n    words+=("$word")\ndone\n'
                   f'exec {engine} "${{words[@]}}"\n')
    os.chmod(program, 0o755)
    return program


def gate(engine, *words):
    command = [NEARMISS, "gate", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "NEARMISS_QEMU": engine})
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done


def against(engine, base, *command):
    done = gate(engine, "--json", "--against", base, "--", *command)
    return done.returncode, json.loads(done.stdout)["figures"]


def most(figures, mode):
    """The figure of a mode that differs most beyond its noise, as text."""
    def beyond(figure):
        return max(abs(figure["difference"]) - figure["noise"], 0) / max(figure["old"], 1)
    of_mode = [f for f in figures if f["name"].startswith(f"{mode}.") and f["old"] >= LEAST_EVENTS]
    worst = max(of_mode, key=beyond)
    return f"{worst['name']} {worst['difference'] / worst['old']:+.2%} (noise {worst['noise'] / worst['old']:.2%})"


def beyond(figures):
    return ", ".join(f["name"] for f in figures if f["ruling"] == "beyond") or "none"


def main():
    missing = [engine for engine in ENGINES if not os.path.exists(engine)]
    if missing:
        sys.exit(f"{missing[0]}: no such emulator; scripts/setup-engines.sh unpacks it")
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        print(cpu())
        with open("lines", "w") as file:
            file.writelines(f"{n * 7919 % 1000003} a line to be sorted\n" for n in range(20_000))
        for name, defines in (("base", []), ("more", ["-DPLANT=INSTRUCTIONS"]), ("calls", ["-DPLANT=CALLS"])):
            subprocess.run(["cc", "-O1", "-g", "-pthread", *defines, "-o", name, f"{HERE}/planted.c"], check=True)
        with open("sum.py", "w") as file:
            file.write("print(sum(i * i % 7 for i in range(100000)))\n")
        with open("more.py", "w") as file:
            file.write("print(sum(i * i % 7 for i in range(108000)))\n")
        cases = [
            ("planted.c", ["./base"], ["./calls"]),
            ("sort", ["sort", "-o", "/dev/null", "lines"], ["sort", "-n", "-o", "/dev/null", "lines"]),
            ("python3", ["/usr/bin/python3", "sum.py"], ["/usr/bin/python3", "more.py"]),
        ]
        engines = [(engine.split("/")[-3], engine) for engine in ENGINES]
        engines.append(("7.2, less", restricted(ENGINES[0], place)))
        for name, same, worse in cases:
            gate(ENGINES[0], "--write", f"{name}.json", "--", *same)
            for version, engine in engines:
                status, figures = against(engine, f"{name}.json", *same)
                worse_status, worse_figures = against(engine, f"{name}.json", *worse)
                print(f"{name:10} under {version:9}: same program status {status}, beyond: {beyond(figures)}; most different: "
                      f"{most(figures, 'user')}, {most(figures, 'kernel')}\n{'':28}regression status {worse_status}, "
                      f"beyond: {beyond(worse_figures)}", flush=True)
                wrong += version != "7.2, less" and (status != 0) + (worse_status != 1)
    print(f"{len(cases)} programs under {len(ENGINES)} emulators, {wrong} judged wrongly")
    sys.exit(1 if wrong else 0)


main()
