#!/usr/bin/env python3
"""Inside the guest of `nearmiss trace`, as root: makes an ext4 on a loop device and runs a command there.

Usage: guest.py LOOP.KO COMMAND [ARGUMENT...]

The guest's kernel has ext4 and no block device; LOOP.KO is the module `loop` of the same kernel, unpacked. The guest goes
away behind the trace, and device, file system and module with it. On a machine that is no such guest it does nothing.
"""
import ctypes
import os
import subprocess
import sys
import tempfile

IMAGE_MIB = 64


def load(module: str) -> None:
    with open(module, "rb") as file:
        code = file.read()
    libc = ctypes.CDLL(None, use_errno=True)
    # init_module has no wrapper in libc's headers; its number is that of x86-64.
    if libc.syscall(175, code, len(code), b"") != 0:
        sys.exit(f"guest.py: {module}: {os.strerror(ctypes.get_errno())}")


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open("/proc/cmdline") as file:
        if "rdinit=/init" not in file.read().split():
            sys.exit("guest.py: this is no guest of nearmiss; run it behind `nearmiss trace --`")
    load(sys.argv[1])
    place = tempfile.mkdtemp(dir="/root")
    image, mounted = f"{place}/image", f"{place}/mounted"
    os.mkdir(mounted)
    with open(image, "wb") as file:
        file.truncate(IMAGE_MIB << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    command = [os.path.abspath(sys.argv[2]), *sys.argv[3:]]
    sys.exit(subprocess.run(command, cwd=mounted).returncode)


main()
