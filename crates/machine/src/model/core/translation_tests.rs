use super::*;
use proptest::prelude::*;

fn figures() -> Tlb {
    let second = Some(SecondTlb { entries: 8, ways: 4, walk_cycles: 30, large_walk_cycles: 20 });
    Tlb { entries: 4, ways: 0, miss_cycles: 7, large_entries: 2, user_pages_large: false, second }
}

fn translation() -> Translation {
    Translation::new(&figures())
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
fn the_same_page_again_asks_nothing() {
    let mut t = translation();
    assert_eq!([t.takes(0, 4096, 2), t.takes(8, 4104, 2), t.takes(16, 4112, 2)], [ticks(37), 0, 0]);
}

#[test]
fn pages_that_are_to_be_large_are_told_by_space_and_virtual_number() {
    let mut t = Translation::new(&Tlb { user_pages_large: true, ..figures() });
    let kernel = 0xffff_8880_0000_0000;
    for (virtual_address, space) in [(0, 2), (0x1f_f000, 2), (0x20_0000, 2), (0, 3), (kernel, 2)] {
        // Physical pages that look like nothing.
        let physical = (virtual_address >> 12) * 0x3000 % (1 << 30) + space * 0x1000;
        t.takes(virtual_address, physical, space);
    }
    assert_eq!(t.counted, Tally { first_misses: 4, walks: 1, large_walks: 3 });
}

/// A level as a list of requests, oldest first: a page is held if it was among the last different ones of its set.
#[derive(Default)]
struct SlowLevel {
    asked: Vec<u64>,
}

impl SlowLevel {
    fn meets(&mut self, page: u64, sets: u64, ways: usize) -> bool {
        let mut others: Vec<u64> = Vec::new();
        let mut held = false;
        for earlier in self.asked.iter().rev().filter(|earlier| *earlier % sets == page % sets) {
            if *earlier == page {
                held = true;
                break;
            }
            if !others.contains(earlier) {
                others.push(*earlier);
            }
        }
        self.asked.push(page);
        held && others.len() < ways
    }
}

proptest! {
    /// A repeated request is skipped; the second level gets the misses of the first.
    #[test]
    fn two_levels_hold_what_a_slow_twin_holds(
        pages in proptest::collection::vec(0u64..40, 1..400), ways in prop_oneof![Just(0u32), Just(2), Just(4)]
    ) {
        let mut t = Translation::new(&Tlb { ways, large_entries: 0, ..figures() });
        let (first_sets, first_ways) = 4u32.checked_div(ways).map_or((1, 4), |sets| (u64::from(sets), ways as usize));
        let (mut first, mut second, mut last) = (SlowLevel::default(), SlowLevel::default(), None);
        for page in pages {
            let (virtual_address, physical) = scattered(page);
            let expected = match physical >> 12 {
                number if last == Some(number) || first.meets(number, first_sets, first_ways) => 0,
                number => 7 + if second.meets(number, 2, 4) { 0 } else { 30 },
            };
            last = Some(physical >> 12);
            prop_assert_eq!(t.takes(virtual_address, physical, 2), ticks(expected));
        }
    }
}
