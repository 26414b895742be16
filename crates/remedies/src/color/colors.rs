//! How many colors are needed: the first paper's equation 2 in general form.

use nearmiss_record::machine::{Cache, Index, Machine, Placement};

/// Lines of aligned pieces that one color can hold in a cache: an alignment of `a` bytes leaves
/// `ways × max(1, way_bytes / a)` lines usable.
pub fn lines_a_color(cache: &Cache, alignment_bytes: u64) -> u64 {
    let way_bytes = cache.size.0 / u64::from(cache.ways.max(1));
    u64::from(cache.ways) * (way_bytes / alignment_bytes.max(1)).max(1)
}

/// The alignment that counts for a cache: where its index takes bits that the placement of pages decides, pieces
/// larger than a page lie as if they were pages.
pub fn effective_alignment(machine: &Machine, cache: &Cache, alignment_bytes: u64) -> u64 {
    let page_bytes = machine.memory.page_size.0;
    let way_bytes = cache.size.0 / u64::from(cache.ways.max(1));
    let by_chance =
        way_bytes > page_bytes && cache.index == Index::Physical && machine.memory.placement == Placement::Random;
    if by_chance { alignment_bytes.min(page_bytes) } else { alignment_bytes }
}

/// Equation 2: the least number of colors, a power of two, with which `lines` lines at the same offset of their pieces
/// fit a cache; `None` where no number of colors helps: the sets are hashed, or the cache has not so many lines.
pub fn least_colors(machine: &Machine, cache: &Cache, lines: u64, alignment_bytes: u64) -> Option<u64> {
    if fully_hashed(cache) || lines > cache.size.0 / cache.line.0 {
        return None;
    }
    let a_color = match cache.index {
        // The hash of the page's number reaches so many sets by itself.
        Index::Hashed => u64::from(cache.ways) << cache.hashed_bits,
        _ => lines_a_color(cache, effective_alignment(machine, cache, alignment_bytes)),
    };
    Some(lines.div_ceil(a_color.max(1)).max(1).next_power_of_two())
}

/// Step from one object's color to the next one's: about the golden section of all, so that neighbours lie far apart,
/// and without a common divisor, so that every color has its turn.
pub fn step(colors: u64) -> u64 {
    let divides = |n: u64, m: u64| m.is_multiple_of(n);
    let coprime = |step: &u64| (2..=*step).all(|n| !divides(n, *step) || !divides(n, colors));
    (colors * 5 / 8..).find(|n| *n > 0 && coprime(n)).unwrap_or(1)
}

/// Whether a hash decides on every bit of the set's number, so that no offset within a page picks any.
pub fn fully_hashed(cache: &Cache) -> bool {
    let sets = nearmiss_machine::describe::sets(cache);
    cache.index == Index::Hashed && (cache.hashed_bits == 0 || 1 << cache.hashed_bits.min(63) >= sets)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::preset;

    #[test]
    fn the_papers_machines_need_the_papers_colors() {
        let mut machine = preset("pentium-pro-4way-512k").unwrap().machine().unwrap();
        let l2 = machine.caches.iter().find(|c| c.level == 2).unwrap().clone();
        // 512 KiB, 4 ways: a way of 128 KiB holds 32 pages, 16 pieces of 8 KiB.
        assert_eq!((lines_a_color(&l2, 8192), lines_a_color(&l2, 4096), lines_a_color(&l2, 1 << 20)), (64, 128, 4));
        machine.memory.placement = Placement::AsRecorded;
        assert_eq!(least_colors(&machine, &l2, 1024, 8192), Some(16));
        machine.memory.placement = Placement::Random;
        assert_eq!(least_colors(&machine, &l2, 1024, 8192), Some(8));
        assert_eq!(least_colors(&machine, &l2, 64, 8192), Some(1));
        assert_eq!(least_colors(&machine, &l2, 1 << 20, 8192), None);
    }

    #[test]
    fn every_color_has_its_turn_and_neighbours_lie_far_apart() {
        assert_eq!([1, 2, 4, 8, 16, 32, 64].map(step), [1, 1, 3, 5, 11, 21, 41]);
        for colors in 1..200 {
            let mut seen: Vec<u64> = (0..colors).map(|n| n * step(colors) % colors).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..colors).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hashed_sets_take_no_colors() {
        let machine = preset("zen4-genoa").unwrap().machine().unwrap();
        let l3 = machine.caches.iter().find(|c| c.level == 3).unwrap();
        assert_eq!(least_colors(&machine, l3, 64, 8192), None);
    }
}
