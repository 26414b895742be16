use super::*;
use proptest::prelude::*;

fn figures() -> Tlb {
    let second =
        Some(SecondTlb { entries: 8, ways: 4, walk_cycles: 30, large_walk_cycles: 20, ..SecondTlb::default() });
    Tlb { entries: 4, miss_cycles: 7, large_entries: 2, second, ..Tlb::default() }
}

fn translation() -> Translation {
    Translation::new(&figures(), &PagePolicy::Recorded)
}

/// Small pages scattered so that no block of them looks like a large page.
fn scattered(page: u64) -> (u64, u64) {
    (page << 12, (page * 3 + 1) << 12)
}

#[test]
fn each_level_keeps_what_fits() {
    for (pages, again) in [(4, 0), (8, 7), (64, 37)] {
        let mut t = translation();
        let mut walk = || (0..pages).map(scattered).map(|(v, p)| t.takes(v, p, 2)).last().unwrap();
        walk();
        assert_eq!(walk(), ticks(again), "{pages} pages");
    }
}

#[test]
fn pages_that_lie_in_order_are_one_large_page() {
    let mut t = translation();
    (0..512).for_each(|page| {
        t.takes((1 << 30) + (page << 12), (3 << 21) + (page << 12), 2);
    });
    assert_eq!(t.counted, Tally { first_misses: 4, walks: 3, large_walks: 1 });
    let mut t = translation();
    (0..512).for_each(|page| {
        t.takes((1 << 30) + (page << 12) + 4096, (3 << 21) + (page << 12), 2);
    });
    assert_eq!((t.counted.walks, t.counted.large_walks), (512, 0), "one page off is no large page");
}

#[test]
fn pieces_of_split_large_pages_have_places_of_their_own() {
    let mut t = Translation::new(&Tlb { large_pages_split: true, ..figures() }, &PagePolicy::Recorded);
    let mut walk = || (0..16).map(|page| t.takes((1 << 30) + (page << 12), (3 << 21) + (page << 12), 2)).last();
    walk();
    assert_eq!(walk(), Some(ticks(7 + 20)), "as long as a walk to a large page");
    assert_eq!(t.counted, Tally { first_misses: 32, walks: 3, large_walks: 29 });
}

#[test]
fn pages_apart_share_a_set_by_their_virtual_numbers() {
    let mut t = Translation::new(&Tlb { ways: 2, ..figures() }, &PagePolicy::Recorded);
    let mut second_walk = |pages: [u64; 3]| {
        let mut walk = || pages.map(|page| t.takes(page << 12, (page / 2 + 100) << 12, 2));
        walk();
        walk()
    };
    assert_eq!(second_walk([0, 2, 4]), [ticks(7); 3], "three in one set of two ways");
    assert_eq!(second_walk([16, 18, 21]), [0; 3], "two and one");
}

#[test]
fn the_last_page_again_costs_nothing() {
    let mut t = translation();
    assert_eq!([t.takes(0, 4096, 2), t.takes(8, 4104, 2), t.takes(16, 4112, 2)], [ticks(37), 0, 0]);
}

#[test]
fn pages_that_are_to_be_large_are_identified_by_space_and_virtual_number() {
    let mut t = Translation::new(&Tlb { user_pages_large: true, ..figures() }, &PagePolicy::Recorded);
    let kernel = 0xffff_8880_0000_0000;
    for (virtual_address, space) in [(0u64, 2), (0x1f_f000, 2), (0x20_0000, 2), (0, 3), (kernel, 2)] {
        // Physical pages that look like nothing.
        let physical = (virtual_address >> 12).wrapping_mul(0x3000) % (1 << 30) + space * 0x1000;
        t.takes(virtual_address, physical, space);
    }
    assert_eq!(t.counted, Tally { first_misses: 4, walks: 1, large_walks: 3 });
}

#[test]
fn a_policy_makes_the_pages_of_its_ranges_large_and_no_others() {
    const LARGE: u64 = 2 << 20;
    // Overlapping ranges in any order are one.
    let ranges = vec![(5 * LARGE, 6 * LARGE), (LARGE, 3 * LARGE), (2 * LARGE, 3 * LARGE)];
    let mut t = Translation::new(&figures(), &PagePolicy::Large { ranges });
    let mut walks = |vaddr: u64| {
        let before = t.counted;
        t.takes(vaddr, (vaddr >> 12) * 0x3000 % (1 << 30) + 0x1000, 2);
        (t.counted.walks - before.walks, t.counted.large_walks - before.large_walks)
    };
    assert_eq!([walks(0), walks(LARGE), walks(2 * LARGE + 4096), walks(5 * LARGE)], [(1, 0), (0, 1), (0, 1), (0, 1)]);
    assert_eq!([walks(2 * LARGE + 9 * 4096), walks(3 * LARGE), walks(6 * LARGE)], [(0, 0), (1, 0), (1, 0)]);
}

/// A level as a list of requested pages with their sets, oldest first: a page is held if it was among the last different
/// ones of its set.
#[derive(Default)]
struct SlowLevel {
    requests: Vec<(u64, u64)>,
}

impl SlowLevel {
    fn access(&mut self, page: u64, set: u64, ways: usize) -> bool {
        let mut others: Vec<u64> = Vec::new();
        let mut held = false;
        for (earlier, _) in self.requests.iter().rev().filter(|(_, of)| *of == set) {
            if *earlier == page {
                held = true;
                break;
            }
            if !others.contains(earlier) {
                others.push(*earlier);
            }
        }
        self.requests.push((page, set));
        held && others.len() < ways
    }
}

proptest! {
    /// A repeated request is skipped; the second level gets the misses of the first.
    #[test]
    fn two_levels_hold_what_a_slow_twin_holds(
        pages in proptest::collection::vec(0u64..40, 1..400), ways in prop_oneof![Just(0u32), Just(2), Just(4)]
    ) {
        let mut t = Translation::new(&Tlb { ways, large_entries: 0, ..figures() }, &PagePolicy::Recorded);
        let (first_sets, first_ways) = 4u32.checked_div(ways).map_or((1, 4), |sets| (u64::from(sets), ways as usize));
        let (mut first, mut second, mut last) = (SlowLevel::default(), SlowLevel::default(), None);
        for page in pages {
            let (virtual_address, physical) = scattered(page);
            let number = virtual_address >> 12;
            let expected = match physical >> 12 {
                page if last == Some(page) || first.access(page, number % first_sets, first_ways) => 0,
                page => 7 + if second.access(page, (number ^ number >> 1) % 2, 4) { 0 } else { 30 },
            };
            last = Some(physical >> 12);
            prop_assert_eq!(t.takes(virtual_address, physical, 2), ticks(expected));
        }
    }
}
