//! Nodes from which a command takes its memory: `set_mempolicy(2)`, which `fork` and `exec` hand on, so that it reaches
//! static and Go programs and all children.

use crate::Error;

/// The kernel takes masks of at most so many nodes.
const MOST_NODES: u32 = 1024;
const WORDS: usize = MOST_NODES as usize / 64;

/// Source of the command's memory. Nodes as Linux numbers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// From these nodes only.
    Bind(Vec<u32>),
    /// Page by page from these nodes in turn.
    Interleave(Vec<u32>),
    /// From this node while it has some, else from others.
    Prefer(u32),
}

/// Memory policy in the form of the system call.
pub(crate) struct RawPolicy {
    mode: libc::c_int,
    mask: [u64; WORDS],
}

impl MemoryPolicy {
    /// Errors: no node, or a number that no machine has.
    pub(crate) fn raw(&self) -> Result<RawPolicy, Error> {
        let (mode, nodes) = match self {
            MemoryPolicy::Bind(nodes) => (libc::MPOL_BIND, nodes.as_slice()),
            MemoryPolicy::Interleave(nodes) => (libc::MPOL_INTERLEAVE, nodes.as_slice()),
            MemoryPolicy::Prefer(node) => (libc::MPOL_PREFERRED, std::slice::from_ref(node)),
        };
        let mut mask = [0; WORDS];
        for node in nodes {
            let word = mask.get_mut(*node as usize / 64).ok_or(Error::Node { node: *node })?;
            *word |= 1 << (node % 64);
        }
        if nodes.is_empty() {
            return Err(Error::NoNode);
        }
        Ok(RawPolicy { mode, mask })
    }
}

impl RawPolicy {
    /// Sets it for this process. Allocates nothing; `errno` gives the reason of a failure.
    pub(crate) fn set(&self) -> bool {
        // The kernel reads one bit less than the argument.
        let bits = MOST_NODES as libc::c_ulong + 1;
        // SAFETY: the mask has as many bits as given, and the call only reads it.
        unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, self.mask.as_ptr(), bits) == 0 }
    }
}
