//! Vertices of a graph that lie on a cycle (Tarjan 1972, without recursion).

/// Order of a vertex not visited yet.
const NEW: u32 = u32::MAX;

struct Search<'a> {
    edges: &'a [Vec<u32>],
    order: Vec<u32>,
    lowest: Vec<u32>,
    open: Vec<u32>,
    is_open: Vec<bool>,
    cyclic: Vec<bool>,
    visited: u32,
}

/// Returns, for each vertex, whether a path leads from it back to it. `edges` lists the successors of each.
pub(super) fn on_a_cycle(edges: &[Vec<u32>]) -> Vec<bool> {
    let count = edges.len();
    let mut search = Search {
        edges,
        order: vec![NEW; count],
        lowest: vec![NEW; count],
        open: Vec::new(),
        is_open: vec![false; count],
        cyclic: vec![false; count],
        visited: 0,
    };
    for root in 0..count {
        if search.order[root] == NEW {
            search.from(root);
        }
    }
    search.cyclic
}

impl Search<'_> {
    fn from(&mut self, root: usize) {
        self.visit(root);
        let mut path = vec![(root, 0_usize)];
        while let Some((vertex, taken)) = path.last_mut() {
            let here = *vertex;
            let Some(&next) = self.edges[here].get(*taken) else {
                path.pop();
                self.leave(here);
                if let Some(&(parent, _)) = path.last() {
                    self.lowest[parent] = self.lowest[parent].min(self.lowest[here]);
                }
                continue;
            };
            *taken += 1;
            let next = next as usize;
            if self.order[next] == NEW {
                self.visit(next);
                path.push((next, 0));
            } else if self.is_open[next] {
                self.lowest[here] = self.lowest[here].min(self.order[next]);
                self.cyclic[here] |= next == here;
            }
        }
    }

    fn visit(&mut self, vertex: usize) {
        self.order[vertex] = self.visited;
        self.lowest[vertex] = self.visited;
        self.visited += 1;
        self.open.push(vertex as u32);
        self.is_open[vertex] = true;
    }

    /// Closes the component that starts with this vertex.
    fn leave(&mut self, vertex: usize) {
        if self.lowest[vertex] != self.order[vertex] {
            return;
        }
        let begin = self.open.iter().rposition(|&open| open as usize == vertex).unwrap_or(0);
        let several = self.open.len() - begin > 1;
        for member in self.open.drain(begin..) {
            self.is_open[member as usize] = false;
            self.cyclic[member as usize] |= several;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_loop_of_one_a_loop_of_two_and_a_tail() {
        assert_eq!(on_a_cycle(&[vec![0], vec![2], vec![1, 3], vec![]]), [true, true, true, false]);
        assert_eq!(on_a_cycle(&[vec![1, 2], vec![3], vec![3], vec![]]), [false; 4]);
    }

    /// All that can be reached from the successors of one.
    fn comes_back(edges: &[Vec<u32>], from: usize) -> bool {
        let mut visited = vec![false; edges.len()];
        let mut open = edges[from].clone();
        while let Some(vertex) = open.pop() {
            if !std::mem::replace(&mut visited[vertex as usize], true) {
                open.extend(&edges[vertex as usize]);
            }
        }
        visited[from]
    }

    proptest! {
        #[test]
        fn cycles_are_those_that_a_search_from_each_vertex_finds(
            edges in prop::collection::vec(prop::collection::vec(0_u32..12, 0..4), 12)
        ) {
            let slow: Vec<_> = (0..12).map(|from| comes_back(&edges, from)).collect();
            prop_assert_eq!(on_a_cycle(&edges), slow);
        }
    }
}
