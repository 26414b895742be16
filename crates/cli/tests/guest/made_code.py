# Makes a function at run time that loads from each of 65,536 lines, and names it as a language's runtime would.
import ctypes, mmap, os

LINES = 1 << 16
# mov ecx, 65536; 1: mov eax, [rdi]; add rdi, 64; dec ecx; jnz 1b; ret
CODE = bytes([0xB9, 0, 0, 1, 0, 0x8B, 0x07, 0x48, 0x83, 0xC7, 0x40, 0xFF, 0xC9, 0x75, 0xF6, 0xC3])

memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory[: len(CODE)] = CODE
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
with open(f"/tmp/perf-{os.getpid()}.map", "w") as names:
    names.write(f"{start:x} {len(CODE):x} JS:*each_line /srv/app.js:3:14\n")
lines = ctypes.create_string_buffer(LINES * 64)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(start)(ctypes.addressof(lines))
