//! Who uses a page.

use nearmiss_record::reference::Kind;

/// User of a page that is placed, as its first reference shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageOf {
    /// User mode refers to it, or the kernel begins to write it at its first byte: it clears the page or copies into it.
    Program,
    /// What the kernel keeps for itself.
    Kernel,
}

impl PageOf {
    /// Returns the user by a reference's kind and virtual address.
    pub fn first_seen(kind: Kind, vaddr: u64) -> Self {
        let in_user_half = vaddr >> 63 == 0;
        let begins = kind == Kind::Store && vaddr & 0xfff == 0;
        if in_user_half || begins { PageOf::Program } else { PageOf::Kernel }
    }
}
