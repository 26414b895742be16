//! A fully associative LRU cache that holds no data: what conflict misses are told apart by.

use super::prefetch::prefetch;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    newer: u32,
    older: u32,
    line: u32,
}

/// Lines, newest first, as a list in flat memory. Who owns a line keeps its node's number and asks
/// [`Shadow::holds`] before using it: a line that goes is not told, which spares a visit to its history.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    nodes: Vec<Node>,
    capacity: usize,
    newest: u32,
    newest_line: u32,
    oldest: u32,
    free: u32,
}

impl Shadow {
    pub fn new(capacity: usize) -> Self {
        Shadow { nodes: Vec::new(), capacity, newest: NONE, newest_line: NONE, oldest: NONE, free: NONE }
    }

    /// Whether `line` still is in `node`, where it once was put.
    #[inline]
    pub fn holds(&self, node: u32, line: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(|n| n.line == line)
    }

    /// Whether the latest request was for `line`.
    #[inline]
    pub fn is_newest(&self, line: u32) -> bool {
        self.newest_line == line
    }

    /// The line of `node` was requested again.
    #[inline]
    pub fn touch(&mut self, node: u32) {
        if node != self.newest {
            self.unlink(node);
            self.link_newest(node);
        }
    }

    #[inline]
    pub fn prefetch(&self, node: u32) {
        prefetch(&self.nodes, node as usize);
    }

    /// Takes in a line that is not there, in the place of the oldest if it is full. Returns its node.
    pub fn insert(&mut self, line: u32) -> u32 {
        let node = if self.free != NONE {
            let node = self.free;
            self.free = self.nodes[node as usize].older;
            node
        } else if self.nodes.len() < self.capacity {
            self.nodes.push(Node { newer: NONE, older: NONE, line });
            self.nodes.len() as u32 - 1
        } else {
            let node = self.oldest;
            self.unlink(node);
            node
        };
        self.nodes[node as usize].line = line;
        self.link_newest(node);
        node
    }

    /// The line of `node` was taken away.
    pub fn remove(&mut self, node: u32) {
        self.unlink(node);
        self.nodes[node as usize].older = self.free;
        self.nodes[node as usize].line = NONE;
        self.free = node;
    }

    #[inline]
    fn unlink(&mut self, node: u32) {
        let Node { newer, older, .. } = self.nodes[node as usize];
        if newer == NONE {
            self.newest = older;
            self.newest_line = self.nodes.get(older as usize).map_or(NONE, |n| n.line);
        } else {
            self.nodes[newer as usize].older = older;
        }
        if older == NONE {
            self.oldest = newer;
        } else {
            self.nodes[older as usize].newer = newer;
        }
    }

    #[inline]
    fn link_newest(&mut self, node: u32) {
        let before = self.newest;
        let linked = &mut self.nodes[node as usize];
        (linked.newer, linked.older) = (NONE, before);
        self.newest_line = linked.line;
        if before == NONE {
            self.oldest = node;
        } else {
            self.nodes[before as usize].newer = node;
        }
        self.newest = node;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_unused_longest_goes_and_a_hole_is_filled_first() {
        let mut shadow = Shadow::new(3);
        let a = shadow.insert(10);
        let b = shadow.insert(11);
        let c = shadow.insert(12);
        assert!(shadow.holds(a, 10) && shadow.holds(b, 11) && shadow.holds(c, 12));
        shadow.touch(a);
        assert_eq!(shadow.insert(13), b, "11 is the oldest: 10 was touched");
        assert!(!shadow.holds(b, 11) && shadow.holds(b, 13));
        shadow.remove(a);
        assert!(!shadow.holds(a, 10));
        assert_eq!(shadow.insert(14), a, "the hole 10 left");
        assert_eq!(shadow.insert(15), c);
        assert!(!shadow.holds(NONE, 15));
    }
}
