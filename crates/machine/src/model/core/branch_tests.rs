use super::super::interval::tests::interval;
use super::super::ticks;
use super::*;
use nearmiss_code::Needed;
use nearmiss_record::units::InsnId;

/// A load that memory answers after 200 cycles, at instruction 100; the core's window has 100 instructions.
fn behind_a_load() -> (Interval, u64) {
    let mut interval = interval();
    let wait = interval.waits(&Waiting {
        kind: Kind::Load,
        insn: 1,
        vaddr: 0x1000,
        size: 8,
        latency_cycles: 200,
        missed: 7,
        writes_back: false,
        reread: None,
        lost: false,
        needed: Needed::default(),
        instructions: 100,
        clock: ticks(100),
        pace: ticks(1),
        at: None,
        origin: None,
    });
    assert_eq!(wait, 100, "the core waits when its window is full");
    (interval, 100 + u64::from(wait))
}

fn of_load(insn: u32) -> Origin {
    Origin { loads: vec![InsnId(insn)], distances: vec![5], cycles: vec![0.0], ..Origin::default() }
}

fn redirected(interval: &mut Interval, instructions: u64, clock: u64, origin: Option<&Origin>) -> Redirected {
    interval.mispredicts(&Decided { instructions, clock: ticks(clock), origin, branch: None, taken: true })
}

#[test]
fn a_branch_that_needs_no_value_costs_its_redirection() {
    let found = redirected(&mut interval(), 50, 50, None);
    assert_eq!(found, Redirected { load: None, value_cycles: 0, redirect_cycles: 15 });
    let hit = redirected(&mut interval(), 50, 50, Some(&of_load(1)));
    assert_eq!(hit, found, "the value was there");
}

#[test]
fn a_branch_waits_for_the_value_that_decides_it() {
    let (mut interval, clock) = behind_a_load();
    // Instruction 110 begins at 110, the value comes at 300. Of 205 cycles, 100 were charged for the full window.
    let found = redirected(&mut interval, 110, clock + 10, Some(&of_load(1)));
    assert_eq!(found, Redirected { load: Some(1), value_cycles: 90, redirect_cycles: 15 });
    assert_eq!(interval.ahead(110), 0, "nothing is left of the wait for the window");
}

#[test]
fn a_branch_that_waits_for_another_value_hides_behind_the_window() {
    let (mut interval, clock) = behind_a_load();
    let found = redirected(&mut interval, 110, clock + 10, Some(&of_load(2)));
    assert_eq!(found, Redirected { load: None, value_cycles: 0, redirect_cycles: 0 }, "the window's wait is 15 less");
    assert_eq!(interval.ahead(110), ticks(85));
}
