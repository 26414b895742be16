//! Addresses in the server's physical memory.
//!
//! The policy, seeded: kernel stacks are blocks of 8 KB, as a buddy allocator's order 1 gives them. Forks that follow
//! one another sometimes get neighbouring blocks, for a larger one was split for both, and sometimes blocks that others
//! gave back long ago: a stack lies right behind the one before with probability [`NEIGHBOUR_PERCENT`], else anywhere.
//! Other memory is pages anywhere.

use crate::random::Random;

/// Kernel stack, and what it is aligned to.
pub const STACK_BYTES: u64 = 8192;
/// The servers' memory (P0, tables 1 and 2).
pub const MEMORY_BYTES: u64 = 1 << 30;
/// Kernel image and static data, at the bottom.
pub const KERNEL_BYTES: u64 = 4 << 20;
/// Chance that a stack is the neighbour of the one before. Assumed.
pub const NEIGHBOUR_PERCENT: u64 = 50;

const BLOCKS: usize = (MEMORY_BYTES / STACK_BYTES) as usize;

/// Free and taken blocks of 8 KB.
pub struct Memory {
    taken: Vec<bool>,
    random: Random,
}

impl Memory {
    /// All free but the kernel.
    pub fn new(seed: u64) -> Self {
        let kernel = (KERNEL_BYTES / STACK_BYTES) as usize;
        Memory { taken: (0..BLOCKS).map(|b| b < kernel).collect(), random: Random::new(seed) }
    }

    fn anywhere(&mut self) -> usize {
        loop {
            let block = self.random.below(BLOCKS as u64) as usize;
            if !self.taken[block] {
                return block;
            }
        }
    }

    /// Physical addresses of `count` stacks, in the order of their forks.
    pub fn stacks(&mut self, count: usize, neighbour_percent: u64) -> Vec<u64> {
        let mut before = None;
        let mut stacks = Vec::with_capacity(count);
        for _ in 0..count {
            let beside = self.random.below(100) < neighbour_percent;
            let next = before.map(|b: usize| b + 1).filter(|&b| beside && b < BLOCKS && !self.taken[b]);
            let block = next.unwrap_or_else(|| self.anywhere());
            self.taken[block] = true;
            before = Some(block);
            stacks.push(block as u64 * STACK_BYTES);
        }
        stacks
    }

    /// Physical addresses of `count` pages of 4 KB; the other half of each one's block stays empty.
    pub fn pages(&mut self, count: usize) -> Vec<u64> {
        let mut pages = Vec::with_capacity(count);
        for _ in 0..count {
            let block = self.anywhere();
            self.taken[block] = true;
            pages.push(block as u64 * STACK_BYTES + self.random.below(2) * 4096);
        }
        pages
    }
}
