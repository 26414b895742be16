#!/usr/bin/env python3
"""Outcome of each verb under a filter and capabilities like those of a container, for the table of docs/containers.md.

Usage, as root: experiments/containers/table.py [--nearmiss BINARY] [ROW ...]
No container engine is used: this script installs a seccomp filter that refuses what Docker's default profile refuses, and
`setpriv` leaves the capabilities. The first lines show what really was left. All of it is observed, on this kernel.
"""
import argparse
import ctypes
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Docker's default capabilities.
DEFAULT = "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod audit_write setfcap"
# x86-64's numbers of what the default profile refuses, and of what lifts the filter from them.
TRACE = {"unshare": 272, "mount": 165, "open_tree": 428, "move_mount": 429, "mount_setattr": 442}
ADMIN = {**TRACE, "umount2": 166, "pivot_root": 155, "setns": 308, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433}
BPF, PERF = {"bpf": 321}, {"perf_event_open": 298}
ALWAYS = {"keyctl": 250, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
          "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239}
NAMESPACES, EPERM, ENOSYS = 0x7E020000, 1, 38
CLONE, CLONE3 = 56, 435

# Name: capabilities beside Docker's, calls that stay refused, whether `clone` may make namespaces.
SETTINGS = {
    "default": ("", {**ADMIN, **BPF, **PERF, **ALWAYS}, False),
    "profile": ("", {**{k: v for k, v in ADMIN.items() if k not in TRACE}, **BPF, **PERF, **ALWAYS}, False),
    "PERFMON": ("perfmon", {**ADMIN, **BPF, **ALWAYS}, False),
    "PERFMON+BPF": ("perfmon bpf", {**ADMIN, **ALWAYS}, False),
    "SYS_ADMIN": ("sys_admin", ALWAYS, True),
}


def filter_program(refused, may_clone):
    """The instructions of classic BPF: an error for each call, and for `clone` with a namespace."""
    load = lambda offset: (0x20, 0, 0, offset)
    equals = lambda call, otherwise: (0x15, 0, otherwise, call)
    error = lambda number: (0x06, 0, 0, 0x00050000 | number)
    program = [load(0)]
    for call in refused.values():
        program += [equals(call, 1), error(EPERM)]
    if not may_clone:
        program += [equals(CLONE3, 1), error(ENOSYS), equals(CLONE, 3), load(16), (0x45, 0, 1, NAMESPACES), error(EPERM)]
    program.append((0x06, 0, 0, 0x7FFF0000))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def under(refused, may_clone):
    """Actions of a child before it executes its program. Root may install a filter without giving up privileges."""
    code = ctypes.create_string_buffer(filter_program(refused, may_clone))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", (len(code) - 1) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        if libc.prctl(22, 2, program, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")
    install.kept = (code, program)
    return install


def left(user, added):
    """`setpriv` with what a container leaves to root, or nothing to user 65534: neither can regain anything."""
    if user:
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
                "--no-new-privs"]
    names = ",".join(f"+{name}" for name in f"{DEFAULT} {added}".split())
    return ["setpriv", f"--bounding-set=-all,{names}", f"--inh-caps=-all,{names}"]


def prepared(nearmiss, place):
    """A home that anybody may read, with the guest's kernel in it, and a run that has a table of pairs."""
    kernels = pathlib.Path.home() / ".cache/nearmiss/kernel"
    if kernels.is_dir():
        shutil.copytree(kernels, place / "home/.cache/nearmiss/kernel", symlinks=True)
    groups = [str(ROOT / "target/subjects/groups"), "--reads", "30000"]
    for command in [["trace", "-q", "-m", "xeon-ht-2x2", "--cpus", "4", "--only", "user", "--runs", str(place / "pairs"), "--", *groups],
                    ["rehearse", "pair"]]:
        run = [str(next((place / "pairs").iterdir()))] if command[0] == "rehearse" else []
        subprocess.run([nearmiss, *command, *run], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # A program that loads no library, with a child.
    source = "#include <unistd.h>\n#include <sys/wait.h>\nint main(void) { if (!fork()) { usleep(200000); _exit(0); } wait(0); }\n"
    subprocess.run(["cc", "-static", "-x", "c", "-o", str(place / "static"), "-"], input=source, text=True, check=True)
    subprocess.run(["chmod", "-R", "a+rwX", str(place)], check=True)
    return next((place / "pairs").iterdir())


def rows(nearmiss, table):
    sleep = ["--", "sleep", "0.3"]
    pair = [nearmiss, "apply", "pair", "--domain", "l3", "--table", str(table)]
    groups = f"{ROOT}/target/subjects/groups --reads"
    return {
        "trace": ([nearmiss, "trace", "-q", "--no-trace", "--no-curve", "--cpus", "1", "--memory", "512MiB", "--", "true"], None),
        **{f"observe --{what}": ([nearmiss, "observe", f"--{what}", *sleep], None) for what in ["clock", "locks", "polls", "io", "sched"]},
        **{f"apply {what[0]}": ([nearmiss, "apply", *what, *sleep], None)
           for what in [["apart"], ["bypass", "--files"], ["color"], ["pace"], ["local", "--bind", "compact"]]},
        "apply local, static": ([nearmiss, "apply", "local", "--bind", "compact", "--", str(table.parents[1] / "static")], None),
        "apply pair": ([*pair, "--", *groups.split(), "100000"], None),
        "apply pair -p": (["timeout", "-s", "INT", "2", *pair, "-p", "PID"], f"{groups} 100000000"),
    }


def tried(command, beside, prefix, setting, home):
    _, refused, may_clone = setting
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        environment = {**os.environ, "HOME": home}
        other = None
        if beside:
            other = subprocess.Popen([*prefix, *beside.split()], cwd=place, stdout=subprocess.DEVNULL)
            time.sleep(0.3)
            command = [str(other.pid) if word == "PID" else word for word in command]
        done = subprocess.run([*prefix, *command], cwd=place, env=environment, preexec_fn=under(refused, may_clone), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if other:
            other.terminate()
            other.wait()
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    first = next((line for line in lines if line.startswith("nearmiss:")), lines[-1] if lines else "")
    return done.returncode, first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nearmiss", default=str(ROOT / "target/release/nearmiss"))
    parser.add_argument("rows", nargs="*")
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("table: only root can leave itself less")
    paranoid = pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    print(f"Linux {os.uname().release}, perf_event_paranoid {paranoid}; observed")
    for user in [False, True]:
        shown = subprocess.run([*left(user, ""), "grep", "^Cap", "/proc/self/status"], capture_output=True, text=True, check=True)
        print("user 65534:" if user else "root:", " ".join(shown.stdout.split()))
    with tempfile.TemporaryDirectory(prefix="containers-") as name:
        place = pathlib.Path(name)
        table = prepared(given.nearmiss, place)
        for name, (command, beside) in rows(given.nearmiss, table).items():
            if given.rows and name not in given.rows:
                continue
            for setting, what in SETTINGS.items():
                for user in [False, True]:
                    status, first = tried(command, beside, left(user, what[0]), what, str(place / "home"))
                    print(f"{name:19} {setting:12} {'user' if user else 'root'}  {status:3}  {first[:150]}", flush=True)


main()
