//! A piece of code that has a name.

/// A function, or another known piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub start: u64,
    /// 0: unknown.
    pub bytes: u64,
    /// As in the file.
    pub symbol: String,
}

impl Code {
    pub fn holds(&self, address: u64) -> bool {
        address >= self.start && address - self.start < self.bytes
    }
}
