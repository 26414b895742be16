//! Places of recorded pages in the modelled machine's memory, and their nodes.

use crate::model::options::ModelOptions;
use crate::model::pages::homes::{Homes, Toucher};
use crate::model::pages::page_of::PageOf;
use crate::model::quick_map::QuickMap;
use nearmiss_record::machine::{Machine, Placement};
use nearmiss_record::policy::{HomePolicy, Policy};
use nearmiss_record::reference::Control;

/// Places pages. A page that a home policy moves to another node keeps the frame that the placement gave it in its
/// recorded node: homes change latencies and classes, not sets.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    page_log2: u32,
    placement: Placement,
    seed: u64,
    /// None: pages stay in their recorded nodes.
    homes: Option<Homes>,
    /// First page and number of pages of each node's memory, as recorded.
    nodes: Vec<(u64, u64)>,
    machine_nodes: u64,
    /// Pages by order of first touch in their node.
    frames: QuickMap<u64, u64>,
    next: Vec<Next>,
}

/// Pages of a node that have places.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    of_programs: u64,
    of_kernel: u64,
}

impl Places {
    pub fn new(machine: &Machine, policy: &Policy, options: &ModelOptions, keep: bool) -> Self {
        let page_log2 = machine.memory.page_size.0.max(4096).ilog2();
        let mut first = 0;
        let mut nodes = Vec::new();
        for bytes in &options.node_bytes {
            nodes.push((first, bytes >> page_log2));
            first += bytes >> page_log2;
        }
        if nodes.is_empty() {
            nodes.push((0, 1 << (40 - page_log2)));
        }
        Places {
            page_log2,
            placement: if keep { Placement::AsRecorded } else { machine.memory.placement },
            seed: machine.memory.placement_seed,
            homes: match &policy.home {
                HomePolicy::Recorded => None,
                HomePolicy::Rules(rules) => Some(Homes::new(rules, machine.memory.nodes.max(1).into())),
            },
            next: vec![Next::default(); nodes.len()],
            nodes,
            machine_nodes: u64::from(machine.memory.nodes.max(1)),
            frames: QuickMap::default(),
        }
    }

    fn node_of(&self, page: u64) -> Option<usize> {
        self.nodes.iter().position(|&(first, pages)| page >= first && page - first < pages)
    }

    /// The memory node of a recorded address that is touched now, and whether no later touch can change it.
    pub fn home(&mut self, address: u64, by: Toucher) -> (u8, bool) {
        let page = address >> self.page_log2;
        let node = self.node_of(page).unwrap_or(self.nodes.len() - 1) as u64;
        let recorded = node.min(self.machine_nodes - 1) as u8;
        self.homes.as_mut().map_or((recorded, true), |homes| homes.home(page, by, recorded))
    }

    /// Handles control records that the homes depend on, on a CPU of `node`.
    pub fn control(&mut self, cpu: usize, node: u8, control: &Control<'_>) {
        if let Some(homes) = &mut self.homes {
            homes.control(cpu, node, control);
        }
    }

    /// The modelled address of a recorded one. One to one; memory that no node has stays where it is.
    pub fn modelled(&mut self, address: u64, of: PageOf) -> u64 {
        let page = address >> self.page_log2;
        let Some(node) = self.node_of(page) else { return address };
        let (first, pages) = self.nodes[node];
        if self.placement == Placement::AsRecorded {
            return address;
        }
        let (next, placement) = (&mut self.next[node], self.placement);
        // Numbers follow the first touch: two recordings of one program, on guests with other pages, agree.
        let number = *self.frames.entry(page).or_insert_with(|| next.number(placement, pages, of));
        let number = match placement {
            Placement::Random => shuffled(number, pages, self.seed ^ (node as u64) << 56),
            _ => number,
        };
        (first + number) << self.page_log2 | address & ((1 << self.page_log2) - 1)
    }
}

impl Next {
    /// Returns the number of a page of a node with so many.
    fn number(&mut self, placement: Placement, pages: u64, of: PageOf) -> u64 {
        let is_apart = placement == Placement::Sequential && of == PageOf::Kernel;
        let count = if is_apart { &mut self.of_kernel } else { &mut self.of_programs };
        *count += 1;
        if is_apart { pages - *count } else { *count - 1 }
    }
}

/// The finalizer of splitmix64.
pub(crate) fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// A seeded permutation of `0..count`: a four-round Feistel network over the next even number of bits, walked until it
/// falls inside.
fn shuffled(number: u64, count: u64, seed: u64) -> u64 {
    let half = (64 - count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half) - 1;
    let mut x = number;
    loop {
        let (mut left, mut right) = (x >> half, x & mask);
        for round in 1..=4u64 {
            (left, right) =
                (right, left ^ mixed(right ^ seed.wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15))) & mask);
        }
        x = left << half | right;
        if x < count {
            return x;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::describe::preset;
    use nearmiss_record::reference::Kind;

    #[test]
    fn what_the_kernel_keeps_moves_no_page_of_a_program() {
        let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
        machine.memory.placement = Placement::Sequential;
        let options = ModelOptions { node_bytes: vec![100 << 12], ..ModelOptions::of_one_cpu() };
        let mut places = Places::new(&machine, &Policy::default(), &options, false);
        let of = [
            PageOf::first_seen(Kind::Load, 0x5555_0000_1238),
            PageOf::first_seen(Kind::Load, 0xffff_8880_0123_4000),
            PageOf::first_seen(Kind::Store, 0xffff_8880_0123_4008),
            PageOf::first_seen(Kind::Store, 0xffff_8880_0123_5000),
        ];
        assert_eq!(of, [PageOf::Program, PageOf::Kernel, PageOf::Kernel, PageOf::Program]);
        let placed: Vec<u64> =
            of.iter().zip([40, 7, 3, 9]).map(|(of, page)| places.modelled(page << 12, *of) >> 12).collect();
        assert_eq!(placed, [0, 99, 98, 1]);
        assert_eq!(places.modelled(40 << 12 | 5, PageOf::Kernel), 5, "once placed, a page stays");
    }

    #[test]
    fn a_shuffle_is_a_permutation_that_its_seed_decides() {
        for count in [1, 2, 3, 64, 1000] {
            let mut seen: Vec<u64> = (0..count).map(|n| shuffled(n, count, 7)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
        assert_ne!(
            (0..100).map(|n| shuffled(n, 100, 1)).collect::<Vec<_>>(),
            (0..100).map(|n| shuffled(n, 100, 2)).collect::<Vec<_>>()
        );
    }
}
