//! Pages of a server with memory of one or two nodes.
//!
//! The page allocator is the one of the paper's base kernel: a page comes from the node of the CPU that allocates
//! (section 2.2 (3)). Which page of the node is anybody's guess: drawn, by a seed. Pages for a moment go round: a
//! node's are some that were given back shortly before.

use crate::random::Random;

/// Memory of a node (table 1).
pub const NODE_BYTES: u64 = 512 << 20;
/// Pages of a node that go round (assumed).
const GOING_ROUND: usize = 64;
/// A page.
pub const PAGE_BYTES: u64 = 4096;
/// A line of the machine.
pub const LINE_BYTES: u64 = 32;
/// Kernel image and static data, at the bottom of node 0 (figure 3).
const KERNEL_BYTES: u64 = 4 << 20;
const PAGES: u64 = NODE_BYTES / PAGE_BYTES;

/// Free and taken pages of both halves of memory.
pub struct Memory {
    nodes: usize,
    taken: Vec<bool>,
    lately: Vec<Vec<u64>>,
    random: Random,
}

impl Memory {
    /// All free but the kernel. With one node, both halves are its.
    pub fn new(nodes: usize, seed: u64) -> Self {
        let kernel = KERNEL_BYTES / PAGE_BYTES;
        let taken = (0..2 * PAGES).map(|page| page < kernel).collect();
        Memory { nodes, taken, lately: vec![Vec::new(); nodes], random: Random::new(seed) }
    }

    /// The node of an address.
    pub fn node(&self, address: u64) -> usize {
        if self.nodes == 1 { 0 } else { (address / NODE_BYTES) as usize }
    }

    /// Returns a page of a node that was not used before.
    pub fn page(&mut self, node: usize) -> u64 {
        let half = if self.nodes == 1 { self.random.below(2) } else { node as u64 };
        loop {
            let page = half * PAGES + self.random.below(PAGES);
            if !std::mem::replace(&mut self.taken[page as usize], true) {
                return page * PAGE_BYTES;
            }
        }
    }

    /// Pages of either node, as they came to be long ago.
    pub fn anywhere(&mut self, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let node = self.random.below(self.nodes as u64) as usize;
                self.page(node)
            })
            .collect()
    }

    /// A page that the node's CPUs had shortly before: one of those that go round.
    pub fn lately(&mut self, node: usize) -> u64 {
        let at = self.random.below(GOING_ROUND as u64) as usize;
        if let Some(page) = self.lately[node].get(at) {
            return *page;
        }
        let page = self.page(node);
        self.lately[node].push(page);
        page
    }
}
