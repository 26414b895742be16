use super::*;

const MS: Duration = Duration::from_millis(1);

fn plan() -> Parts {
    let (pauses, whole) = (Pauses::Growing { first: 10 * MS, by: 1.4 }, 1000 * MS);
    Parts {
        followed: Duration::ZERO,
        first: 200 * MS,
        first_records: 2500,
        longest: 100 * MS,
        records: 1000,
        pauses,
        whole,
        all_records: 5000,
        paused_ns_a_second: 0,
        part_ns: None,
        period_ns: 0,
    }
}

fn filling_plan() -> Parts {
    let (first, pauses) = (100 * MS, Pauses::Filling);
    Parts { first, first_records: 250, longest: first, records: 250, pauses, ..plan() }
}

#[test]
fn a_first_part_of_no_time_is_over_as_it_begins() {
    let opening = |plan| {
        let now = Instant::now();
        Schedule::begin(plan, now).opening(now)
    };
    let at_once = Parts { first: Duration::ZERO, ..plan() };
    assert_eq!(opening(at_once), Lengths { part_ns: 1, pause_ns: 0 }, "nothing is known of the guest's clock");
    let Lengths { part_ns, pause_ns } = opening(Parts { period_ns: 1000, ..at_once });
    assert_eq!((part_ns, pause_ns), (1, (1000.0 * unevenness(1)) as u64));
    let by_rate = opening(Parts { paused_ns_a_second: 1_000_000, ..at_once });
    assert_eq!(by_rate.pause_ns, (10_000.0 * unevenness(1)) as u64);
    assert_eq!(opening(plan()), Lengths::default());
}

fn untimed(records: u64, is_paused: bool) -> Seen {
    Seen { records, is_paused, ..Seen::default() }
}

/// Looks every millisecond; a part sends `rate` records in each.
fn run(rate: u64, length: u32) -> (Vec<(u32, Due)>, Covered) {
    run_of(plan(), rate, length)
}

fn run_of(plan: Parts, rate: u64, length: u32) -> (Vec<(u32, Due)>, Covered) {
    run_late(plan, rate, length, 0)
}

/// Each pause begins so many milliseconds late.
fn run_late(plan: Parts, rate: u64, length: u32, late: u32) -> (Vec<(u32, Due)>, Covered) {
    let began = Instant::now();
    let mut schedule = Schedule::begin(plan, began);
    let (mut seen, mut records, mut paused, mut end) = (Vec::new(), 0, false, length);
    let mut pause_at = None;
    for ms in 1..=length {
        paused |= pause_at.is_some_and(|at| at < ms);
        records += if paused { 0 } else { rate };
        if let Some(due) = schedule.look(began + ms * MS, untimed(records, paused)) {
            seen.push((ms, due));
            pause_at = (due == Due::Pause).then_some(ms + late);
            paused &= due != Due::GoOn;
            if due == Due::End {
                end = ms;
                break;
            }
        }
    }
    (seen, schedule.end(began + end * MS, untimed(records, paused)))
}

#[test]
fn a_short_run_is_one_part() {
    let covered = Covered { parts: 1, recorded: 190 * MS, reached: 190 * MS, ..Covered::default() };
    assert_eq!(run(1, 190), (vec![], covered));
}

#[test]
fn a_run_that_ends_in_its_first_pause_was_not_recorded_whole() {
    let (seen, covered) = run(1, 205);
    assert_eq!(seen, [(200, Due::Pause)]);
    assert_eq!((covered.parts, covered.recorded, covered.paused), (1, 200 * MS, true));
}

#[test]
fn pauses_grow_and_the_command_ends_with_the_plan() {
    let (seen, covered) = run(1, 5000);
    let firsts = [(200, Due::Pause), (210, Due::GoOn), (310, Due::Pause), (324, Due::GoOn)];
    assert_eq!(seen[..4], firsts);
    assert_eq!(seen.last(), Some(&(1000, Due::End)));
    assert!(covered.ended && covered.reached == 1000 * MS && covered.parts >= 6, "{covered:?}");
}

#[test]
fn pauses_by_the_guests_clock_fill_the_period_of_a_part() {
    let began = Instant::now();
    let mut schedule = Schedule::begin(Parts { period_ns: 1_000_000, ..filling_plan() }, began);
    assert_eq!(schedule.offer(began).pause_ns, (1e6 * unevenness(1)) as u64, "no part has ended");
    let mut look = |ms: u32, records, is_paused, changes, changed_ns| {
        let seen = Seen { records, is_paused, changes, changed_ns, ..Seen::default() };
        (schedule.look(began + ms * MS, seen), schedule.offer(began + ms * MS))
    };
    look(1, 0, false, 1, 100);
    // A part of 250 records takes 400,000 ns: the rest of the period is a pause, evenly long on average.
    let (_, offered) = look(50, 250, true, 2, 400_100);
    assert_eq!(offered, Lengths { part_ns: 400_000, pause_ns: (6e5 * unevenness(1)) as u64 });
    assert_eq!(look(51, 250, true, 2, 400_100).0, None);
    assert_eq!(look(900, 250, true, 2, 400_100).0, None, "however long the pause takes here");
}

#[test]
fn parts_of_few_records_fill_the_plan_and_others_are_half_of_it() {
    let filling = filling_plan();
    // 5000 records in 20 parts of 25 ms.
    let (seen, covered) = run_of(filling, 10, 5000);
    assert_eq!(seen[..2], [(25, Due::Pause), (52, Due::GoOn)]);
    assert_eq!((covered.parts, covered.recorded, covered.ended), (20, 500 * MS, true));
    let (_, covered) = run_of(Parts { all_records: 2500, ..filling }, 10, 5000);
    assert_eq!((covered.parts, covered.recorded), (10, 250 * MS));
    assert!(covered.reached > 850 * MS, "{covered:?}");
    let (seen, covered) = run_of(filling, 1, 5000);
    assert_eq!(seen[..3], [(100, Due::Pause), (200, Due::GoOn), (300, Due::Pause)]);
    assert_eq!(covered.parts, 5);
}

#[test]
fn parts_that_pause_late_fill_the_plan_too() {
    let filling = filling_plan();
    // 25 ms until a pause is requested, and 50 ms until it is made.
    let (_, covered) = run_late(filling, 10, 5000, 50);
    assert!(covered.reached > 850 * MS && covered.parts >= 5, "{covered:?}");
}

/// A plugin that times itself: a millisecond of a pause is a second of the guest in slow phases, which are every other
/// 40 s of the guest, and four in fast ones; a millisecond of a part is an eighth of it. Returns the part's share of
/// the slow phases, and what was covered.
fn share_of_slow_phases(plan: Parts) -> (f64, Covered) {
    const SECOND: u64 = 1_000_000_000;
    let (began, mut records, mut clock, mut slow, mut parts_ns) = (Instant::now(), 0, SECOND, 0u64, 0u64);
    let mut schedule = Schedule::begin(plan, began);
    let (mut seen, mut alarm) = (Seen::default(), u64::MAX);
    for ms in 1.. {
        let is_slow = (clock / (40 * SECOND)).is_multiple_of(2);
        let speed = if is_slow { SECOND } else { 4 * SECOND } / if seen.is_paused { 1 } else { 8 };
        if !seen.is_paused {
            records += speed * 80 / SECOND;
            parts_ns += speed;
            slow += if is_slow { speed } else { 0 };
        }
        clock += speed;
        let due = schedule.look(began + ms * MS, Seen { records, ..seen });
        let changes = due.is_some() || clock >= alarm;
        if due == Some(Due::End) {
            return (slow as f64 / parts_ns as f64, schedule.end(began + ms * MS, seen));
        }
        if changes {
            let Lengths { part_ns, pause_ns } = schedule.offer(began + ms * MS);
            seen = Seen { is_paused: !seen.is_paused, changes: seen.changes + 1, changed_ns: clock, ..seen };
            let length = if seen.is_paused { pause_ns } else { part_ns };
            alarm = if length == 0 { u64::MAX } else { clock + length };
        }
    }
    unreachable!("a plan ends")
}

#[test]
fn a_plugin_that_times_itself_records_slow_phases_by_their_instructions() {
    let plan = Parts { whole: 40_000 * MS, all_records: 100_000, records: 400, longest: 100 * MS, ..filling_plan() };
    let (share, covered) = share_of_slow_phases(plan);
    assert!((share - 0.5).abs() < 0.06, "{share}");
    assert!(covered.ended && covered.parts > 150, "{covered:?}");
    assert!(covered.reached > 30_000 * MS, "{covered:?}");
}

#[test]
fn a_pause_ahead_of_the_window_is_no_part() {
    let began = Instant::now();
    let mut schedule = Schedule::begin(plan(), began);
    let mut look = |ms: u32, is_paused, changes| {
        let changed_ns = u64::from(changes) * 1_000_000;
        schedule.look(began + ms * MS, Seen { is_paused, changes, changed_ns, ..Seen::default() })
    };
    assert_eq!([look(0, false, 2), look(100, false, 2)], [None; 2]);
    // A pause and a part between two looks.
    assert_eq!([look(120, false, 4), look(140, false, 4)], [None; 2]);
    assert_eq!(schedule.end(began + 150 * MS, untimed(0, false)).parts, 2);
}

#[test]
fn pauses_are_uneven_and_as_long_as_planned_on_average() {
    let all: Vec<f64> = (1..=24).map(unevenness).collect();
    assert!((all.iter().sum::<f64>() / 24.0 - 1.0).abs() < 0.1, "{all:?}");
    assert!(all.iter().all(|share| (0.25..1.75).contains(share)));
    let below = all.iter().filter(|share| **share < 0.625).count();
    assert!((4..=12).contains(&below), "{all:?}");
}

#[test]
fn a_longer_first_part_leaves_the_rest_to_the_others() {
    let plan = Parts { first: 200 * MS, first_records: 1000, ..filling_plan() };
    let (seen, covered) = run_of(plan, 10, 5000);
    assert_eq!(seen[0], (100, Due::Pause));
    assert!(covered.reached > 900 * MS && (16..=17).contains(&covered.parts), "{covered:?}");
}

#[test]
fn parts_count_when_the_plugin_comes_to_them() {
    let began = Instant::now();
    let mut schedule = Schedule::begin(plan(), began);
    let mut look = |ms: u32, is_paused| schedule.look(began + ms * MS, untimed(0, is_paused));
    assert_eq!(look(200, false), Some(Due::Pause));
    // The pause is made 300 ms late, and the next part never.
    assert_eq!([look(210, false), look(500, false), look(509, true)], [None; 3]);
    assert_eq!(look(510, true), Some(Due::GoOn));
    assert_eq!(look(900, true), None);
    assert_eq!(look(1000, true), Some(Due::End));
    let covered = schedule.end(began + 1000 * MS, untimed(0, true));
    assert_eq!((covered.parts, covered.recorded), (1, 500 * MS));
}

#[test]
fn a_part_ends_with_its_records_and_the_plan_with_all() {
    let (seen, covered) = run(100, 5000);
    assert_eq!(seen[..4], [(25, Due::Pause), (35, Due::GoOn), (45, Due::Pause), (59, Due::GoOn)]);
    assert_eq!(seen.last().map(|(_, due)| *due), Some(Due::End));
    assert_eq!((covered.parts, covered.recorded), (4, 50 * MS));
}
