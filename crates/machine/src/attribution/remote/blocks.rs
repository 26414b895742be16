//! Heap blocks: whether the allocator hands out memory on another node than it was freed on, while the node that freed
//! it allocates too. A pool by thread gives such memory to the node that had it last. If one node only frees and
//! another one only allocates, messages pass one way, and no pool changes that.

use nearmiss_record::reference::{Control, HeapOp};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Share of the blocks handed out again that could have gone to the node that freed them, from which on pools matter.
const HANDED_ELSEWHERE: f64 = 0.1;

/// Blocks of one process that were handed out again.
#[derive(Clone, Debug, Default)]
struct Again {
    all: u64,
    elsewhere: u64,
    /// Blocks by node: those that it had freed and another node was given, and blocks that it was given.
    nodes: BTreeMap<u8, (u64, u64)>,
}

impl Again {
    /// Blocks that could have gone to the node that had freed them.
    fn useful(&self) -> u64 {
        self.nodes.values().map(|(lost, given)| lost.min(given)).sum()
    }
}

/// The heaps of all processes.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Node that freed a block last, by process and first address.
    freed: FxHashMap<(u32, u64), u8>,
    again: FxHashMap<u32, Again>,
}

impl Blocks {
    /// A CPU of `node`, which runs process `pid`.
    pub fn control(&mut self, pid: u32, node: u8, control: &Control<'_>) {
        let Control::Heap { op, address, old, .. } = *control else { return };
        match op {
            HeapOp::Free => self.free(pid, address, node),
            HeapOp::Alloc => self.allocate(pid, address, node),
            HeapOp::Realloc if address != old => {
                self.free(pid, old, node);
                self.allocate(pid, address, node);
            }
            HeapOp::Realloc | HeapOp::Stack | HeapOp::Trim | HeapOp::Managed => {}
        }
    }

    fn free(&mut self, pid: u32, address: u64, node: u8) {
        if address != 0 {
            self.freed.insert((pid, address), node);
        }
    }

    fn allocate(&mut self, pid: u32, address: u64, node: u8) {
        if let Some(freed_on) = self.freed.remove(&(pid, address)) {
            let again = self.again.entry(pid).or_default();
            again.all += 1;
            again.nodes.entry(node).or_default().1 += 1;
            if freed_on != node {
                again.elsewhere += 1;
                again.nodes.entry(freed_on).or_default().0 += 1;
            }
        }
    }

    /// Whether many blocks of this process go to another node than freed them, which is given blocks as well.
    pub fn go_elsewhere(&self, pid: u32) -> bool {
        let useful = |again: &Again| again.useful() > 0 && again.useful() as f64 >= HANDED_ELSEWHERE * again.all as f64;
        self.again.get(&pid).is_some_and(useful)
    }

    /// Returns the share of the blocks handed out again that another node had freed.
    pub fn handed_elsewhere(&self) -> f64 {
        let sum = |count: fn(&Again) -> u64| self.again.values().map(count).sum::<u64>();
        sum(|again| again.elsewhere) as f64 / sum(|again| again.all).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(op: HeapOp, address: u64, old: u64) -> Control<'static> {
        Control::Heap { op, address, size: 64, old, alignment: 0 }
    }

    #[test]
    fn blocks_count_by_the_node_that_freed_them() {
        let mut blocks = Blocks::default();
        let mut call = |node, op, address, old| blocks.control(7, node, &heap(op, address, old));
        for address in 1..=10 {
            call(0, HeapOp::Alloc, address, 0);
            call(0, HeapOp::Free, address, 0);
            call(0, HeapOp::Alloc, address, 0);
        }
        call(1, HeapOp::Free, 1, 0);
        assert!(!blocks.go_elsewhere(7));
        // Ten came back where they had been, two did not.
        blocks.control(7, 0, &heap(HeapOp::Alloc, 1, 0));
        blocks.control(7, 1, &heap(HeapOp::Realloc, 20, 2));
        blocks.control(7, 0, &heap(HeapOp::Alloc, 2, 0));
        assert_eq!(blocks.handed_elsewhere(), 2.0 / 12.0);
        assert!(!blocks.go_elsewhere(7), "node 1 was given no block that had been in use");
        for address in [3, 4] {
            blocks.control(7, 1, &heap(HeapOp::Free, address, 0));
            blocks.control(7, 1, &heap(HeapOp::Alloc, address, 0));
        }
        assert!(blocks.go_elsewhere(7) && !blocks.go_elsewhere(8));
    }
}
