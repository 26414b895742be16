//! Addresses of the agent's pages in the guest's memory: found from outside, through the page tables of the guest's
//! first process, because `/proc/self/pagemap` shows 0 for pages that the kernel maps by frame (perf rings, from Linux
//! 6.16 on).

use super::page_tables::{DIRECT_MAP, KERNEL_MAP, walk};
use serde::{Deserialize, Serialize};

const PAGE_BYTES: u64 = 4096;
/// The agent is the guest's init.
const AGENT_PID: u64 = 1;

/// Location of the kernel's first process. Offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FirstProcess {
    /// Address of `init_task`, the head of the list of all processes.
    pub(super) idle: u64,
    /// In `task_struct`.
    pub(super) tasks: u32,
    pub(super) pid: u32,
    pub(super) mm: u32,
    /// In `mm_struct`.
    pub(super) pgd: u32,
}

impl FirstProcess {
    /// Physical addresses of its pages from a virtual address on; `None` where one is not mapped.
    pub(super) fn physical_pages(&self, at: u64, pages: u64, word: &dyn Fn(u64) -> Option<u64>) -> Option<Vec<u64>> {
        let top_table = self.top_table(word)?;
        (0..pages).map(|page| walk(word, top_table, at.checked_add(page * PAGE_BYTES)?)).collect()
    }

    fn top_table(&self, word: &dyn Fn(u64) -> Option<u64>) -> Option<u64> {
        let kernel_word = |address: u64| word(kernel_physical(address)?);
        let first = kernel_word(self.idle + u64::from(self.tasks))?.checked_sub(self.tasks.into())?;
        let pid = kernel_word(first.checked_add(self.pid.into())?)? & u64::from(u32::MAX);
        let mm = kernel_word(first.checked_add(self.mm.into())?)?;
        let pgd = kernel_word(mm.checked_add(self.pgd.into())?)?;
        kernel_physical(pgd).filter(|_| pid == AGENT_PID)
    }
}

/// In the kernel's two fixed mappings; tasks and top tables lie nowhere else.
fn kernel_physical(address: u64) -> Option<u64> {
    address.checked_sub(KERNEL_MAP).or_else(|| address.checked_sub(DIRECT_MAP))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const FIRST: FirstProcess = FirstProcess { idle: KERNEL_MAP + 0x1000, tasks: 0x10, pid: 0x20, mm: 0x28, pgd: 0x8 };
    const RING: u64 = 0x7f00_0020_3000;

    /// A kernel with a first process of this number that maps two pages at [`RING`].
    fn memory(pid: u64) -> HashMap<u64, u64> {
        let (present, task, mm) = (1, DIRECT_MAP + 0x4000, DIRECT_MAP + 0x5000);
        HashMap::from([
            (0x1010, task + 0x10),
            (0x4020, pid | 0x77_0000_0000),
            (0x4028, mm),
            (0x5008, DIRECT_MAP + 0x6000),
            (0x6000 + 8 * (RING >> 39 & 511), 0x7000 | present),
            (0x7000 + 8 * (RING >> 30 & 511), 0x8000 | present),
            (0x8000 + 8 * (RING >> 21 & 511), 0x9000 | present),
            (0x9000 + 8 * (RING >> 12 & 511), 0xaa_a000 | present | 1 << 63),
            (0x9000 + 8 * ((RING >> 12 & 511) + 1), 0xbb_b000 | present),
            (0x9000 + 8 * ((RING >> 12 & 511) + 2), 0xcc_c000),
        ])
    }

    #[test]
    fn pages_are_found_through_the_page_tables() {
        let memory = memory(1);
        let word = |at: u64| memory.get(&at).copied();
        assert_eq!(FIRST.physical_pages(RING, 2, &word), Some(vec![0xaa_a000, 0xbb_b000]));
        assert_eq!(FIRST.physical_pages(RING, 3, &word), None, "the third is not mapped");
        assert_eq!(FIRST.physical_pages(u64::MAX - 5, 2, &word), None);
    }

    #[test]
    fn another_process_is_not_taken_for_the_agent() {
        let memory = memory(2);
        assert_eq!(FIRST.physical_pages(RING, 1, &|at| memory.get(&at).copied()), None);
    }
}
