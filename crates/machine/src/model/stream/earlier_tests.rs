use super::*;
use crate::describe::preset;
use proptest::prelude::*;

const LINE: u64 = 64;
/// Instructions that no test gives lines of their own.
const OTHER: u32 = 1000;

/// Sixteen parts of a program, each with the references that `of_part` returns: instruction and line. A reference takes
/// ten cycles.
fn parts<I: Iterator<Item = (u32, u64)>>(of_part: impl Fn(u64) -> I) -> Earlier {
    parts_on(&preset("zen3-milan").unwrap().machine().unwrap(), of_part)
}

fn parts_on<I: Iterator<Item = (u32, u64)>>(machine: &Machine, of_part: impl Fn(u64) -> I) -> Earlier {
    let mut earlier = Earlier::new(machine, false);
    let mut cycles = 0;
    for part in 0..16 {
        for (insn, line) in of_part(part) {
            earlier.note(line * LINE, insn);
            cycles += 10;
        }
        earlier.pause(cycles);
    }
    earlier
}

/// Share of lines that were in a cache of this level, 0 being the first: of new ones, and of those seen before.
fn shares(earlier: &Earlier, insn: u32, level: usize) -> [f64; 2] {
    let lines = (0..10_000).map(|line| earlier.was_there((1 << 40) + line * LINE, insn));
    let counts = lines.fold([0, 0], |[new, again], (fresh, known)| {
        [new + u32::from(fresh >> level & 1), again + u32::from(known >> level & 1)]
    });
    counts.map(|count| f64::from(count) / 10_000.0)
}

/// Share of new lines that were there.
fn there_in(earlier: &Earlier, insn: u32, level: usize) -> f64 {
    shares(earlier, insn, level)[0]
}

fn random(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(hashing::mixed(seed) | 1), |seed| {
        Some(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
    .skip(1)
    .map(|number| number >> 33)
}

/// A part of a program that comes at random to so many lines.
fn at_random(lines: u64) -> impl Fn(u64) -> Box<dyn Iterator<Item = (u32, u64)>> {
    move |part| Box::new(random(part).take(4_000).map(move |number| (1, number % lines)))
}

#[test]
fn nothing_was_there_in_a_run_that_was_seen_from_its_start() {
    let machine = preset("zen3-milan").unwrap().machine().unwrap();
    let mut earlier = Earlier::new(&machine, false);
    (0..200_000).for_each(|line| earlier.note(line % 100 * LINE, 1));
    assert_eq!([1, 2].map(|level| there_in(&earlier, 1, level)), [0.0, 0.0]);
    let late = Earlier::new(&machine, true);
    assert_eq!(
        [0, 1, 2].map(|level| there_in(&late, 1, level)),
        [0.0, 0.0, 1.0],
        "nothing is known of a late start yet"
    );
}

#[test]
fn lines_that_a_program_comes_back_to_were_there() {
    let earlier = parts(at_random(4_000));
    assert_eq!([0, 1, 2].map(|level| there_in(&earlier, 1, level)), [0.0, 1.0, 1.0]);
    assert_eq!(there_in(&earlier, OTHER, 2), 1.0, "nothing is known of others");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// A program that comes at random to so many times the lines of the second level, which has 8,192.
    #[test]
    fn a_cache_had_its_share_of_the_lines(times in 1.5f64..8.0, seed in 0u64..1 << 32) {
        let lines = (8_192.0 * times) as u64;
        let of_part = |part: u64| random(seed + part).take(4_000).map(move |number| (1, number % lines));
        let share = there_in(&parts(of_part), 1, 1);
        prop_assert!((share * times - 1.0).abs() < 0.5, "{share} of 1/{times}");
    }
}

#[test]
fn lines_of_a_stream_were_not_there() {
    let earlier = parts(|part| (0..4_000).map(move |at| (1, part * 1_000_000 + at)));
    assert!(there_in(&earlier, 1, 2) < 0.2, "{}", there_in(&earlier, 1, 2));
}

#[test]
fn lines_of_an_instruction_that_a_pause_hid_are_in_the_outermost_cache_until_two_parts_showed_it() {
    let machine = preset("zen3-milan").unwrap().machine().unwrap();
    let begun = || {
        let mut earlier = Earlier::new(&machine, false);
        (0..1_000_000).for_each(|line| earlier.note((1 << 32) + line * LINE, OTHER));
        earlier.pause(10_000_000);
        (0..200).for_each(|line| earlier.note(line * LINE, 1));
        assert_eq!(there_in(&earlier, 1, 2), 0.0, "too few lines");
        (200..4_000).for_each(|line| earlier.note(line * LINE, 1));
        earlier
    };
    assert_eq!([1, 2].map(|level| there_in(&begun(), 1, level)), [0.0, 1.0]);
    let second = |first_line: u64| {
        let mut earlier = begun();
        earlier.pause(10_040_000);
        assert_eq!(there_in(&earlier, 1, 2), 1.0, "nothing is new yet");
        (first_line..first_line + 4_000).for_each(|line| earlier.note(line * LINE, 1));
        there_in(&earlier, 1, 2)
    };
    assert_eq!([second(0), second(1 << 20)], [1.0, 0.0], "the lines of a table, and those of a stream");
}

#[test]
fn an_instruction_that_streams_leaves_those_of_another_one_there() {
    let both = |part| {
        let table = at_random(4_000)(part);
        table
            .zip((0u64..).map(move |at| (2, (1 << 32) + part * 1_000_000 + at)))
            .flat_map(|(table, stream)| [table, stream])
    };
    let earlier = parts(both);
    assert!(there_in(&earlier, 1, 2) > 0.99 && there_in(&earlier, 2, 2) < 0.2);
    assert!(there_in(&earlier, 2, 1) < 0.01, "{}", there_in(&earlier, 2, 1));
}

#[test]
fn others_push_out_what_waits_long() {
    let machine = |others_lines| {
        let mut machine = preset("zen3-milan").unwrap().machine().unwrap();
        machine.caches.iter_mut().filter(|cache| cache.level == 3).for_each(|cache| cache.others_lines = others_lines);
        machine
    };
    // 100,000 lines that are used every million cycles or so fit the third level, with its 524,288 lines.
    let there = |others_lines: u32| there_in(&parts_on(&machine(others_lines), at_random(100_000)), 1, 2);
    assert_eq!(there(0), 1.0);
    // Others fill sets of the mean rate within 1.3 million cycles, and in these 1 - exp(-1.3) of the lines are used
    // meanwhile, 0.73. The mean over all rates is 1 - z K1(z), with z = 2 √1.3 and the Bessel function K1: 0.78.
    let share = there(400_000);
    assert!((share - 0.78).abs() < 0.05, "{share}");
    // Hot lines among them are used all the time, if another instruction made them as well.
    let with_hot = |part| {
        let insn = if part == 0 { 3 } else { 2 };
        at_random(100_000)(part).chain((0..1_000).map(move |line| (insn, (1 << 32) + line)))
    };
    let earlier = parts_on(&machine(400_000), with_hot);
    let [_, again] = shares(&earlier, 2, 2);
    assert_eq!(again, 1.0);
    let [_, again] = shares(&earlier, 1, 2);
    assert!(again < 0.9, "{again}");
}

#[test]
fn a_line_that_was_written_past_the_caches_is_not_there() {
    let mut earlier = parts(at_random(4_000));
    let was = |earlier: &Earlier, address| earlier.was_there(address, 1) != (0, 0);
    assert!(was(&earlier, 1 << 40));
    earlier.goes_around(1 << 40);
    assert!(!was(&earlier, 1 << 40) && was(&earlier, (1 << 40) + LINE));
    earlier.pause(1_000_000);
    assert!(was(&earlier, 1 << 40), "nobody knows what came after");
}
