//! Short programs made at run time, as no compiler writes them: so many instructions of one kind between two misses.

use memmap2::{Mmap, MmapMut};

/// Executable code of x86-64: a function of four words.
pub struct Assembled {
    code: Mmap,
}

impl Assembled {
    /// A loop: `before` once, `body` until the count in `rsi` is used up, then `after`. Nothing on other processors, and
    /// where the kernel refuses executable memory.
    pub fn looping(before: &[u8], body: &[u8], after: &[u8]) -> Option<Assembled> {
        const DEC_RSI: [u8; 3] = [0x48, 0xff, 0xce];
        const JNZ: [u8; 2] = [0x0f, 0x85];
        const RET: u8 = 0xc3;
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let back = i32::try_from(body.len() + DEC_RSI.len() + JNZ.len() + 4).ok()?;
        let code = [before, body, &DEC_RSI, &JNZ, &(-back).to_le_bytes(), after, &[RET]].concat();
        let mut memory = MmapMut::map_anon(code.len()).ok()?;
        memory[..code.len()].copy_from_slice(&code);
        Some(Assembled { code: memory.make_exec().ok()? })
    }

    /// Runs the code with `rdi`, `rsi`, `rdx` and `rcx`; the loop runs `loops` times, at least once.
    ///
    /// # Safety
    /// The code writes no register but rax, rcx, rdx, rsi, rdi and r8 to r11, leaves the stack alone, and all that it
    /// reads and writes through these arguments is the caller's to read and write.
    pub unsafe fn run(&self, rdi: *mut u64, loops: u64, rdx: *mut u64, rcx: *const u64) {
        type Function = unsafe extern "C" fn(*mut u64, u64, *mut u64, *const u64);
        // SAFETY: the mapping is executable, lives as long as `self`, and begins with a whole function, made for this
        // processor, that ends by a return; the caller promises that it keeps to the calling convention and that its
        // arguments are good.
        unsafe {
            let code: Function = std::mem::transmute(self.code.as_ptr());
            code(rdi, loops.max(1), rdx, rcx);
        }
    }
}
