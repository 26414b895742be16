//! An LRU stack cut at chosen depths (Kim, Hill and Wood 1991): one list of lines, newest first, each knowing only
//! between which two cuts it lies. A reference to a line moves one line across each cut above it.

use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    newer: u32,
    older: u32,
    /// Number of cuts above the line.
    group: u32,
}

/// Misses of fully associative LRU caches of several sizes, from one pass.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Cache sizes in lines, ascending.
    sizes: Vec<u64>,
    /// Deepest line that a cache of a size but not of the next smaller holds, by size.
    last: Vec<u32>,
    nodes: Vec<Node>,
    numbers: FxHashMap<u64, u32>,
    newest: u32,
    newest_line: u64,
    /// Hits by group; the last: too deep for all.
    hits: Vec<u64>,
    references: u64,
}

impl Stack {
    /// For caches of these sizes in lines; sorted, and each once.
    pub fn new(mut sizes: Vec<u64>) -> Self {
        sizes.sort_unstable();
        sizes.dedup();
        sizes.retain(|size| *size > 0);
        Stack {
            last: vec![NONE; sizes.len()],
            hits: vec![0; sizes.len() + 1],
            sizes,
            nodes: Vec::new(),
            numbers: FxHashMap::default(),
            newest: NONE,
            newest_line: u64::MAX,
            references: 0,
        }
    }

    /// Takes a reference to a line, and returns how many of the sizes miss, the smallest first.
    pub fn reference(&mut self, line: u64) -> usize {
        self.references += 1;
        if line == self.newest_line && self.newest != NONE {
            self.hits[0] += 1;
            return 0;
        }
        self.newest_line = line;
        let fresh = self.nodes.len() as u32;
        let node = *self.numbers.entry(line).or_insert(fresh);
        let (crossed, missing) = if node == fresh {
            self.nodes.push(Node { newer: NONE, older: NONE, group: 0 });
            // Every cache that is full gives up a line.
            (self.sizes.partition_point(|size| *size <= u64::from(fresh)), self.sizes.len())
        } else {
            let group = self.nodes[node as usize].group as usize;
            self.hits[group] += 1;
            self.unlink(node, group);
            (group, group)
        };
        for cut in 0..crossed {
            let mover = self.last[cut];
            self.nodes[mover as usize].group += 1;
            self.last[cut] = self.nodes[mover as usize].newer;
            if let Some(below) = self.last.get_mut(cut + 1).filter(|below| **below == NONE) {
                *below = mover;
            }
        }
        self.nodes[node as usize] = Node { newer: NONE, older: self.newest, group: 0 };
        if self.newest != NONE {
            self.nodes[self.newest as usize].newer = node;
        }
        self.newest = node;
        // The first line of all, or a smallest size of one line: what moved on was all there was.
        if let Some(last) = self.last.first_mut().filter(|last| **last == NONE) {
            *last = node;
        }
        missing
    }

    fn unlink(&mut self, node: u32, group: usize) {
        let Node { newer, older, .. } = self.nodes[node as usize];
        if let Some(last) = self.last.get_mut(group).filter(|last| **last == node) {
            *last = newer;
        }
        if newer != NONE {
            self.nodes[newer as usize].older = older;
        }
        if older != NONE {
            self.nodes[older as usize].newer = newer;
        }
    }

    /// References so far.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// `(size in lines, misses)`, ascending sizes.
    pub fn misses(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut hits = 0;
        self.sizes.iter().zip(&self.hits).map(move |(size, more)| {
            hits += more;
            (*size, self.references - hits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_size_misses_as_a_cache_of_that_size_does(
            sizes in prop::collection::vec(1..20u64, 1..6),
            lines in prop::collection::vec(0..25u64, 0..300),
        ) {
            let mut stack = Stack::new(sizes);
            lines.iter().for_each(|line| _ = stack.reference(*line));
            for (size, misses) in stack.misses() {
                let mut cache: Vec<u64> = Vec::new();
                let mut expected = 0;
                for line in &lines {
                    match cache.iter().position(|l| l == line) {
                        Some(at) => drop(cache.remove(at)),
                        None => expected += 1,
                    }
                    cache.insert(0, *line);
                    cache.truncate(size as usize);
                }
                prop_assert_eq!(misses, expected, "size {}", size);
            }
        }
    }

    #[test]
    fn a_loop_hits_only_where_it_fits() {
        let mut stack = Stack::new(vec![9, 10, 11]);
        (0..100).for_each(|i| _ = stack.reference(i % 10));
        assert_eq!(stack.misses().collect::<Vec<_>>(), [(9, 100), (10, 10), (11, 10)]);
    }
}
