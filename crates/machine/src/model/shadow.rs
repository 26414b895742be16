//! A fully associative LRU cache that holds no data: what conflict misses are told apart by.

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    newer: u32,
    older: u32,
    line: u32,
}

/// Lines, newest first, as a list in flat memory; who owns a node keeps its number.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    nodes: Vec<Node>,
    capacity: usize,
    newest: u32,
    oldest: u32,
    free: u32,
}

impl Shadow {
    pub fn new(capacity: usize) -> Self {
        Shadow { nodes: Vec::new(), capacity, newest: NONE, oldest: NONE, free: NONE }
    }

    /// The line of `node` was requested again.
    #[inline]
    pub fn touch(&mut self, node: u32) {
        if node != self.newest {
            self.unlink(node);
            self.link_newest(node);
        }
    }

    /// Takes in a line that is not there. Returns its node and the line that had to go.
    pub fn insert(&mut self, line: u32) -> (u32, Option<u32>) {
        let mut gone = None;
        let node = if self.free != NONE {
            let node = self.free;
            self.free = self.nodes[node as usize].older;
            node
        } else if self.nodes.len() < self.capacity {
            self.nodes.push(Node { newer: NONE, older: NONE, line });
            self.nodes.len() as u32 - 1
        } else {
            let node = self.oldest;
            gone = Some(self.nodes[node as usize].line);
            self.unlink(node);
            node
        };
        self.nodes[node as usize].line = line;
        self.link_newest(node);
        (node, gone)
    }

    /// The line of `node` was taken away.
    pub fn remove(&mut self, node: u32) {
        self.unlink(node);
        self.nodes[node as usize].older = self.free;
        self.free = node;
    }

    #[inline]
    fn unlink(&mut self, node: u32) {
        let Node { newer, older, .. } = self.nodes[node as usize];
        if newer == NONE {
            self.newest = older;
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
        self.nodes[node as usize].newer = NONE;
        self.nodes[node as usize].older = before;
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
        let (a, _) = shadow.insert(10);
        let (b, _) = shadow.insert(11);
        let (_, gone) = shadow.insert(12);
        assert_eq!(gone, None);
        shadow.touch(a);
        assert_eq!(shadow.insert(13).1, Some(11), "11 is the oldest: 10 was touched");
        shadow.remove(a);
        assert_eq!(shadow.insert(14).1, None, "the hole 10 left");
        assert_eq!(shadow.insert(15).1, Some(12));
        let _ = b;
    }
}
