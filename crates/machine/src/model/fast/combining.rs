//! Write-combining buffers: where non-temporal stores wait until their line is whole.

use crate::observer::Effective;

/// A line being put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combined {
    pub line: u64,
    pub mask: u128,
    pub home: u8,
    /// Latest store into the line.
    pub last: Effective,
}

impl Combined {
    /// Transactions that the line takes: `(full lines, 8-byte parts)`.
    pub fn transactions(&self, line_log2: u32) -> (u8, u8) {
        if self.mask == whole(line_log2) {
            return (1, 0);
        }
        let parts = (0..16).filter(|part| self.mask >> (part * 8) & 0xff != 0).count();
        (0, parts as u8)
    }
}

fn whole(line_log2: u32) -> u128 {
    if line_log2 >= 7 { u128::MAX } else { (1 << (1 << line_log2)) - 1 }
}

/// The buffers of one core, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    waiting: Vec<Combined>,
}

impl Buffers {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Stores into a buffer. Returns those that must go: the oldest for lack of a buffer, the line itself once whole.
    pub fn store(&mut self, new: Combined, buffers: usize, line_log2: u32) -> [Option<Combined>; 2] {
        let mut gone = [None, None];
        let at = match self.waiting.iter().position(|b| b.line == new.line) {
            Some(at) => {
                let buffer = &mut self.waiting[at];
                *buffer = Combined { mask: buffer.mask | new.mask, ..new };
                at
            }
            None => {
                if self.waiting.len() == buffers {
                    gone[0] = Some(self.waiting.remove(0));
                }
                self.waiting.push(new);
                self.waiting.len() - 1
            }
        };
        if self.waiting[at].mask == whole(line_log2) {
            gone[1] = Some(self.waiting.remove(at));
        }
        gone
    }

    /// Empties the buffers. Returns their contents, oldest first.
    pub fn drain(&mut self) -> Vec<Combined> {
        std::mem::take(&mut self.waiting)
    }
}
