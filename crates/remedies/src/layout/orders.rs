//! The order of pieces in which visits touch the fewest lines.

use super::pieces::Piece;

/// Pieces that are tried in all orders, at most: 40,320 orders.
const MOST_EXACT: usize = 8;
/// Sets of pieces that an order is judged by: the most frequent.
const MOST_VISITS: usize = 48;
/// Rounds of exchanges of two pieces.
const ROUNDS: usize = 4;
/// Pieces in use that are exchanged, at most.
const MOST_EXCHANGED: usize = 40;

/// Rules by which an order is judged.
#[derive(Clone, Debug)]
pub struct Judge<'a> {
    /// Sets of pieces by their bits, and how often.
    pub visits: &'a [(u128, u64)],
    /// Bytes of a line.
    pub line: u64,
    /// Bytes of the element, at least.
    pub least_bytes: u64,
    /// Bytes behind the begin of a line at which the first element begins.
    pub begin: u64,
    /// Bytes from one element to the next, for an element of so many.
    pub stride: fn(u64) -> u64,
}

/// Places of pieces one behind another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldOrder {
    /// Indices of the pieces, and the first byte of each.
    pub places: Vec<(usize, u64)>,
    /// Size of the element in bytes.
    pub bytes: u64,
    /// The elements of arrays lie where they were, and not one behind another.
    pub is_as_it_was: bool,
}

impl FieldOrder {
    /// Returns the bytes of the pieces of a set, half-open.
    fn ranges<'o>(&'o self, pieces: &'o [Piece], set: u128) -> impl Iterator<Item = (u64, u64)> + 'o {
        let used = self.places.iter().filter(move |(at, _)| set >> at & 1 != 0);
        used.flat_map(|&(at, from)| {
            let piece = &pieces[at];
            let packed = (from, from + piece.bytes());
            let apart = if self.is_as_it_was { piece.times } else { 0 };
            piece.ranges().take(apart as usize).chain((apart == 0).then_some(packed))
        })
    }
}

/// Puts pieces one behind another, each as aligned as it was.
pub fn placed(pieces: &[Piece], order: &[usize], least_bytes: u64) -> FieldOrder {
    let (mut places, mut behind, mut most) = (Vec::with_capacity(order.len()), 0u64, 1);
    for &at in order {
        let piece = &pieces[at];
        let from = behind.next_multiple_of(piece.alignment());
        places.push((at, from));
        behind = from + piece.bytes();
        most = most.max(piece.alignment());
    }
    FieldOrder { places, bytes: behind.next_multiple_of(most).max(least_bytes), is_as_it_was: false }
}

impl Judge<'_> {
    /// Number of the visits that orders are judged by.
    pub fn judged(&self) -> u64 {
        self.visits.iter().take(MOST_VISITS).map(|(_, count)| count).sum()
    }

    /// Lines that all visits touch together, of elements at each place that they can have in a line.
    pub fn lines(&self, pieces: &[Piece], order: &FieldOrder) -> f64 {
        let begins = self.begins(order.bytes);
        let touched = |set: u128| -> u32 { begins.iter().map(|begin| self.touched(pieces, order, set, *begin)).sum() };
        let visits = self.visits.iter().take(MOST_VISITS);
        visits.map(|&(set, count)| count as f64 * f64::from(touched(set)) / begins.len() as f64).sum()
    }

    /// Lines that a visit of one element touches.
    fn touched(&self, pieces: &[Piece], order: &FieldOrder, set: u128, begin: u64) -> u32 {
        let lines = order.ranges(pieces, set).map(|(from, to)| {
            let [first, last] = [begin + from, begin + to - 1].map(|byte| (byte / self.line).min(127));
            (u128::MAX >> (127 - (last - first))) << first
        });
        lines.fold(0, |all, lines| all | lines).count_ones()
    }

    /// Places in a line at which elements begin.
    fn begins(&self, bytes: u64) -> Vec<u64> {
        let stride = (self.stride)(bytes);
        let mut begins: Vec<u64> = (0..self.line).map(|number| (self.begin + number * stride) % self.line).collect();
        begins.sort_unstable();
        begins.dedup();
        begins
    }

    /// The best order that is found, and its lines: the best of all for up to eight pieces in use. Pieces that no visit
    /// uses lie behind the others.
    pub fn best(&self, pieces: &[Piece]) -> (FieldOrder, f64) {
        let as_it_was: Vec<usize> = (0..pieces.len()).collect();
        let mut best = (placed(pieces, &as_it_was, self.least_bytes), f64::MAX);
        best.1 = self.lines(pieces, &best.0);
        let all_used = self.visits.iter().fold(0, |all, (set, _)| all | set);
        let (mut used, unused): (Vec<usize>, Vec<usize>) = as_it_was.iter().partition(|at| all_used >> **at & 1 != 0);
        if used.len() <= MOST_EXACT {
            self.all(pieces, &mut used, 0, &unused, &mut best);
            return best;
        }
        used = self.by_affinity(&used);
        self.try_order(pieces, &[&used[..], &unused].concat(), &mut best);
        for _ in 0..if used.len() <= MOST_EXCHANGED { ROUNDS } else { 0 } {
            let before = best.1;
            self.exchange(pieces, used.len(), &mut best);
            if best.1 >= before {
                break;
            }
        }
        best
    }

    fn try_order(&self, pieces: &[Piece], order: &[usize], best: &mut (FieldOrder, f64)) {
        let tried = placed(pieces, order, self.least_bytes);
        let lines = self.lines(pieces, &tried);
        // Of two alike the smaller element, and else the one as it was.
        if lines < best.1 - 1e-9 || lines <= best.1 + 1e-9 && tried.bytes < best.0.bytes {
            *best = (tried, lines);
        }
    }

    fn all(&self, pieces: &[Piece], used: &mut [usize], fixed: usize, unused: &[usize], best: &mut (FieldOrder, f64)) {
        if fixed == used.len() {
            return self.try_order(pieces, &[used, unused].concat(), best);
        }
        for next in fixed..used.len() {
            used[fixed..=next].rotate_right(1);
            self.all(pieces, used, fixed + 1, unused, best);
            used[fixed..=next].rotate_left(1);
        }
    }

    /// Tries each exchange of two of the first pieces.
    fn exchange(&self, pieces: &[Piece], first: usize, best: &mut (FieldOrder, f64)) {
        for (one, other) in (0..first).flat_map(|one| (one + 1..first).map(move |other| (one, other))) {
            let mut tried: Vec<usize> = best.0.places.iter().map(|(at, _)| *at).collect();
            tried.swap(one, other);
            self.try_order(pieces, &tried, best);
        }
    }

    /// The most used piece first, then always the one that is used most together with those before it.
    fn by_affinity(&self, used: &[usize]) -> Vec<usize> {
        let uses = |set: u128| -> u64 {
            self.visits.iter().filter(|(used, _)| used & set == set).map(|(_, count)| count).sum()
        };
        let together = |before: &[usize], at: usize| -> u64 {
            before.iter().rev().take(4).map(|other| uses(1 << at | 1 << other)).sum::<u64>().max(uses(1 << at) / 64)
        };
        let (mut order, mut rest): (Vec<usize>, Vec<usize>) = (Vec::new(), used.to_vec());
        while !rest.is_empty() {
            let score =
                |at: &usize| (if order.is_empty() { uses(1 << at) } else { together(&order, *at) }, usize::MAX - at);
            let Some(next) = rest.iter().copied().max_by_key(score) else { break };
            rest.retain(|at| *at != next);
            order.push(next);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sizes: &[u64]) -> Vec<Piece> {
        let mut from = 0;
        let mut piece = |bytes: &u64| {
            let piece = Piece { from, to: from + bytes, ..Piece::default() };
            from += bytes;
            piece
        };
        sizes.iter().map(&mut piece).collect()
    }

    fn judge(visits: &[(u128, u64)]) -> Judge<'_> {
        Judge { visits, line: 64, least_bytes: 0, begin: 0, stride: |bytes| bytes }
    }

    #[test]
    fn pieces_lie_as_aligned_as_they_were() {
        let pieces = pieces(&[8, 4, 4, 8]);
        let order = placed(&pieces, &[1, 0, 2, 3], 0);
        assert_eq!((order.places, order.bytes), (vec![(1, 0), (0, 8), (2, 16), (3, 24)], 32));
    }

    #[test]
    fn what_is_used_together_comes_onto_one_line() {
        // Two words, 192 bytes apart.
        let pieces = pieces(&[8, 184, 8, 56]);
        let visits = [(0b101, 100)];
        let judge = judge(&visits);
        let as_it_was = placed(&pieces, &[0, 1, 2, 3], 0);
        assert_eq!(judge.lines(&pieces, &as_it_was), 200.0);
        let (best, lines) = judge.best(&pieces);
        assert_eq!((lines, best.bytes), (100.0, 256));
    }

    #[test]
    fn elements_that_straddle_lines_count_both() {
        // 72 bytes, of which the first 16 are used.
        let pieces = pieces(&[16, 56]);
        let visits = [(0b01, 8)];
        let lines = judge(&visits).lines(&pieces, &placed(&pieces, &[0, 1], 0));
        assert_eq!(lines, 9.0, "of eight begins the one at 56 has it on two lines");
    }

    #[test]
    fn the_search_by_affinity_is_within_a_fiftieth_of_all_orders() {
        let mut state = 7u64;
        let mut random = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % most
        };
        let (mut exact_lines, mut found_lines) = (0.0, 0.0);
        for _ in 0..20 {
            let sizes: Vec<u64> = (0..7).map(|_| 8 << random(4)).collect();
            let pieces = pieces(&sizes);
            let visits: Vec<(u128, u64)> = (0..6).map(|_| (1 + u128::from(random(127)), 1 + random(100))).collect();
            let judge = judge(&visits);
            exact_lines += judge.best(&pieces).1;
            let mut best = (placed(&pieces, &judge.by_affinity(&[0, 1, 2, 3, 4, 5, 6]), 0), f64::MAX);
            best.1 = judge.lines(&pieces, &best.0);
            (0..ROUNDS).for_each(|_| judge.exchange(&pieces, pieces.len(), &mut best));
            found_lines += best.1;
        }
        assert!(found_lines <= 1.02 * exact_lines, "{found_lines} {exact_lines}");
    }
}
