//! Node of a page under a policy's rules.

use crate::model::pages::page_of::PageOf;
use crate::model::quick_map::QuickMap;
use nearmiss_record::policy::{Home, HomeRule};
use nearmiss_record::reference::{Control, HeapOp, Kind};
use std::collections::BTreeMap;

/// Toucher of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toucher {
    pub cpu: usize,
    /// Node of the CPU.
    pub node: u8,
    /// Virtual address as recorded, if it is known.
    pub vaddr: Option<u64>,
    /// User of the page, if this is its first reference.
    pub page_of: PageOf,
}

impl Toucher {
    /// The CPU of this number and node makes a reference of a kind.
    pub fn of(cpu: usize, node: u8, kind: Kind, vaddr: u64) -> Self {
        Toucher { cpu, node, vaddr: Some(vaddr), page_of: PageOf::first_seen(kind, vaddr) }
    }

    /// The CPU of this number and node touched the page before.
    pub fn before(cpu: usize, node: u8) -> Self {
        Toucher { cpu, node, vaddr: None, page_of: PageOf::Program }
    }
}

/// The rules, and the tasks and heap blocks that they refer to.
///
/// A page is often touched before its rule can be found: the kernel clears it at an address of its own. So a rule that
/// comes before the one that decided takes the page over when a reference fits it.
#[derive(Clone, Debug)]
pub(crate) struct Homes {
    rules: Vec<HomeRule>,
    nodes: u64,
    /// Number of the rule, and node, by page.
    decided: QuickMap<u64, (usize, u8)>,
    /// Thread and process that run, by CPU.
    running: QuickMap<usize, (u32, u32)>,
    /// Heap blocks by process and first address: the address behind the last byte, and the node of the CPU that
    /// allocated it.
    blocks: BTreeMap<(u32, u64), (u64, u8)>,
}

impl Homes {
    pub fn new(rules: &[HomeRule], nodes: u64) -> Self {
        Homes {
            rules: rules.to_vec(),
            nodes,
            decided: QuickMap::default(),
            running: QuickMap::default(),
            blocks: BTreeMap::new(),
        }
    }

    /// The node of a page that is touched now, and whether that is settled; `recorded` is the one it was recorded in.
    pub fn home(&mut self, page: u64, by: Toucher, recorded: u8) -> (u8, bool) {
        let decided = self.decided.get(&page).copied();
        let open = decided.map_or(self.rules.len(), |(rule, _)| rule);
        for rule in 0..open {
            if let Some(node) = self.node_by(self.rules[rule], page, by, recorded) {
                self.decided.insert(page, (rule, node));
                return (node, rule == 0);
            }
        }
        decided.map_or((recorded, self.rules.is_empty()), |(rule, node)| (node, rule == 0))
    }

    /// The node that a rule gives, if the reference fits it.
    fn node_by(&self, rule: HomeRule, page: u64, by: Toucher, recorded: u8) -> Option<u8> {
        let (pid, process) = self.running.get(&by.cpu).copied().unwrap_or_default();
        let inside = |(from, to)| by.vaddr.is_some_and(|vaddr| (from..to).contains(&vaddr));
        let fits = rule.pages.is_none_or(inside) && rule.task.is_none_or(|task| by.vaddr.is_some() && task == pid);
        if !fits {
            return None;
        }
        match rule.home {
            Home::Recorded => Some(recorded),
            Home::Node(node) => Some(node as u8),
            Home::FirstTouch => Some(by.node),
            Home::Interleave => Some((page % self.nodes) as u8),
            Home::Pool => self.pool_of(process, by.vaddr?),
        }
    }

    fn pool_of(&self, process: u32, vaddr: u64) -> Option<u8> {
        let (_, (end, node)) = self.blocks.range((process, 0)..=(process, vaddr)).next_back()?;
        (vaddr < *end).then_some(*node)
    }

    /// Follows tasks and heap blocks on a CPU of `node`.
    pub fn control(&mut self, cpu: usize, node: u8, control: &Control<'_>) {
        match *control {
            Control::Switch { pid, tgid, .. } => {
                self.running.insert(cpu, (pid, tgid));
            }
            Control::Heap { op, address, size, old, .. } => {
                let process = self.running.get(&cpu).map_or(0, |running| running.1);
                let gone = if op == HeapOp::Free { address } else { old };
                self.blocks.remove(&(process, gone));
                if matches!(op, HeapOp::Alloc | HeapOp::Realloc) {
                    self.blocks.insert((process, address), (address.saturating_add(size), node));
                }
            }
            _ => {}
        }
    }
}
