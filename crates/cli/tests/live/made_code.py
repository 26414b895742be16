# Makes two functions at run time, runs each for half a second, and names the first as a language's runtime would.
import ctypes, mmap, os, sys, time

LOOP = bytes([0xB9, 0x40, 0x42, 0x0F, 0x00, 0xFF, 0xC9, 0x75, 0xFC, 0xC3])  # mov ecx, 1000000; dec ecx; jnz; ret

memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for offset in (0, 256):
    memory[offset : offset + len(LOOP)] = LOOP
with open(f"/tmp/perf-{os.getpid()}.map", "w") as names:
    names.write(f"{start:x} {len(LOOP):x} JS:*count_down /srv/app.js:3:14\n")
print(names.name)
for offset in (0, 256):
    function = ctypes.CFUNCTYPE(None)(start + offset)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        function()
