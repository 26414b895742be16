//! Latency that the core hides of its misses, and its work in a cycle: measured by short programs made at run time.
//!
//! Two misses with filler between them show how far a core looks ahead: while both fit, they overlap (H. Wong,
//! "Measuring Reorder Buffer Capacity", 2013). With stores for filler the store buffer ends it.

use super::additions::Additions;
use super::assembled::Assembled;
use super::chains::side_by_side;
use super::chase::Cycle;
use super::fetch::ahead_instructions;
use super::settle::{Settled, jump, settled};
use super::{around, atomics, banks, crowded};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Figures measured of the core; none for those that could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreFigures {
    /// Misses under way at once.
    pub chains: Option<Settled>,
    /// Instructions between two misses that still overlap.
    pub window: Option<Settled>,
    /// Stores between two misses that still overlap.
    pub stores: Option<Settled>,
    /// Instructions a cycle that wait for nothing.
    pub width: Option<Settled>,
    /// Cycles from a store to a load of it and on.
    pub forwarding_cycles: Option<Settled>,
    /// Cycles that a mispredicted branch costs.
    pub mispredict_cycles: Option<Settled>,
    /// Instructions by which the front end is ahead.
    #[serde(default)]
    pub fetch_ahead_instructions: Option<Settled>,
    /// Cycles of a store to a line that earlier stores evict.
    #[serde(default)]
    pub crowded_store_cycles: Option<Settled>,
    /// Cycles of an addition to a line that earlier additions evict.
    #[serde(default)]
    pub crowded_addition_cycles: Option<Settled>,
    /// Cycles of such a store where sixteen sets take turns.
    #[serde(default)]
    pub crowded_beside_cycles: Option<Settled>,
    /// Lines of one set at which a store takes half of `crowded_store_cycles`.
    #[serde(default)]
    pub crowded_half_lines: Option<Settled>,
    /// Cycles from a line of the second level to the next: loads at the distances of [`banks::DISTANCES`].
    #[serde(default)]
    pub second_level_cycles: [Option<Settled>; banks::DISTANCES.len()],
    /// Cycles from a line of the second level to the next: additions at those distances.
    #[serde(default)]
    pub second_level_written_cycles: [Option<Settled>; banks::DISTANCES.len()],
    /// Cycles of a load's line with its latency hidden.
    #[serde(default)]
    pub fill_cycles: Option<Settled>,
    /// Time of an atomic on a line of its own that is far away, as a share of one that waits for another such one.
    #[serde(default)]
    pub atomics_beside: Option<Settled>,
    /// Cycles of an addition to a line that another CPU adds to as well.
    #[serde(default)]
    pub contended_addition_cycles: Additions<Option<Settled>>,
    /// Cycles of a store, an atomic and a load of lines that another CPU writes, each with one, two and four lines in play.
    #[serde(default)]
    pub contended_cycles: [[Option<Settled>; 3]; 3],
    /// Cycles of a load's line that non-temporal stores have just written, by bytes written since.
    #[serde(default)]
    pub reread_cycles: [Option<Settled>; 3],
}

/// `xor r9d, r9d`: waits for nothing, and most cores execute it at renaming.
const CLEAR: &[u8] = &[0x45, 0x31, 0xc9];
/// `lea r9, [rcx+1]`, `lea r11, [rcx+1]` and an instruction that does nothing: two of three write a register, as in
/// usual code. A window of a Zen 4 holds twice as many of those alone that write none.
const USUAL: [&[u8]; 3] = [&[0x4c, 0x8d, 0x49, 0x01], &[0x4c, 0x8d, 0x59, 0x01], &[0x0f, 0x1f, 0x40, 0x00]];
/// `mov [rdx], r10`
const STORE: &[u8] = &[0x4c, 0x89, 0x12];
/// Rounds of one length of filler; the least counts.
const ROUNDS: usize = 5;
/// Pairs of misses of a round.
const PAIRS: u64 = 150;
/// Two misses that do not overlap take twice the time of two that do; half of that is seen.
const LEAST_JUMP: f64 = 0.3;

/// Measures the core. `far`: a cycle through memory that no cache holds; `near`: those that the levels hold, from the
/// second one on.
pub fn measure(near: &[Cycle], far: &Cycle) -> CoreFigures {
    let middle = |series: Vec<(u32, f64)>, step: u32| jump(&series, LEAST_JUMP).map(|n| f64::from(n + step / 2 + 2));
    let cycles: Vec<&Cycle> = near.last().into_iter().chain([far]).collect();
    let second_level_ns = near.first().map(Cycle::nanoseconds);
    CoreFigures {
        chains: side_by_side(&cycles),
        window: settled(|| middle(filled(far, &USUAL, 64, 1024, 16), 16)),
        stores: settled(|| middle(filled(far, &[STORE], 8, 192, 4), 4).map(|n| n - 2.0)),
        width: settled(width),
        forwarding_cycles: settled(forwarding),
        mispredict_cycles: settled(mispredict),
        fetch_ahead_instructions: settled(|| ahead_instructions(second_level_ns?)),
        crowded_store_cycles: settled(|| Some(crowded::store_nanoseconds() / cycle_ns()?)),
        crowded_addition_cycles: settled(|| Some(crowded::addition_nanoseconds() / cycle_ns()?)),
        crowded_beside_cycles: settled(|| Some(crowded::store_beside_nanoseconds() / cycle_ns()?)),
        crowded_half_lines: settled(|| Some(crowded::half_lines())),
        second_level_cycles: banks::DISTANCES
            .map(|distance| settled(|| Some(banks::loads_nanoseconds(distance) / cycle_ns()?))),
        second_level_written_cycles: banks::DISTANCES
            .map(|distance| settled(|| Some(banks::additions_nanoseconds(distance) / cycle_ns()?))),
        fill_cycles: settled(|| Some(crowded::fill_nanoseconds() / cycle_ns()?)),
        atomics_beside: settled(|| Some(atomics::share_beside_others())),
        // Another CPU has a part in it.
        contended_addition_cycles: Additions::default(),
        contended_cycles: [[None; 3]; 3],
        reread_cycles: around::KIBIBYTES.map(|kib| settled(|| Some(around::reread_nanoseconds(kib)? / cycle_ns()?))),
    }
}

/// Nanoseconds of a pair of misses by the number of instructions between them: those of the filler in turn.
fn filled(far: &Cycle, filler: &[&[u8]], from: u32, to: u32, step: usize) -> Vec<(u32, f64)> {
    let mut at = [far.fresh(), far.fresh()];
    let between = |n: u32| filler.iter().copied().cycle().take(n as usize).collect::<Vec<_>>().concat();
    (from..=to).step_by(step).map_while(|n| Some((n, pair(far, &mut at, &between(n))?))).collect()
}

fn pair(far: &Cycle, at: &mut [u64; 2], filler: &[u8]) -> Option<f64> {
    // mov rax, [rdi]; mov r8, [rdi+8]
    let before = [0x48, 0x8b, 0x07, 0x4c, 0x8b, 0x47, 0x08];
    // mov rax, [rcx+rax*8] and mov r8, [rcx+r8*8], each with the filler behind it
    let body = [&[0x48, 0x8b, 0x04, 0xc1], filler, &[0x4e, 0x8b, 0x04, 0xc1], filler].concat();
    // mov [rdi], rax; mov [rdi+8], r8
    let after = [0x48, 0x89, 0x07, 0x4c, 0x89, 0x47, 0x08];
    let code = Assembled::looping(&before, &body, &after)?;
    let mut scratch = [0u64; 8];
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        // SAFETY: the code keeps to the registers that `run` names, reads and writes the two places and the scratch, and
        // reads the words of the cycle, each of which holds the number of another word of it.
        unsafe { code.run(at.as_mut_ptr(), PAIRS, scratch.as_mut_ptr(), far.words().as_ptr()) };
        least = least.min(started.elapsed().as_secs_f64() * 1e9 / PAIRS as f64);
    }
    Some(least)
}

/// Nanoseconds of one of `each` repeated instructions, the least of several rounds.
fn repeated(instructions: &[u8], each: usize) -> Option<f64> {
    const LOOPS: u64 = 200;
    const SHORT_ROUNDS: usize = 20;
    let code = Assembled::looping(&[], &instructions.repeat(each), &[])?;
    let mut words = [0u64; LOOPS as usize + 1];
    let at = words.as_mut_ptr();
    let mut least = f64::INFINITY;
    for _ in 0..SHORT_ROUNDS {
        let started = Instant::now();
        // SAFETY: the code keeps to the registers that `run` names, and to the words that the count of loops numbers.
        unsafe { code.run(at, LOOPS, at, at) };
        least = least.min(started.elapsed().as_secs_f64());
    }
    Some(least * 1e9 / (LOOPS * each as u64) as f64)
}

/// Nanoseconds of a cycle now: a multiplication takes three on every x86-64 core since 2008.
fn cycle_ns() -> Option<f64> {
    const IMUL_RAX: [u8; 4] = [0x48, 0x0f, 0xaf, 0xc0];
    Some(repeated(&IMUL_RAX, 256)? / 3.0)
}

fn width() -> Option<f64> {
    Some(cycle_ns()? / repeated(CLEAR, 512)?)
}

fn forwarding() -> Option<f64> {
    // mov [rdi+rsi*8], rax; mov rax, [rdx+rsi*8]: an address that changes from loop to loop, since cores rename values
    // at a place that never moves, such as a variable on the stack.
    const THERE_AND_BACK: [u8; 8] = [0x48, 0x89, 0x04, 0xf7, 0x48, 0x8b, 0x04, 0xf2];
    Some(repeated(&THERE_AND_BACK, 128)? / cycle_ns()?)
}

fn mispredict() -> Option<f64> {
    const BRANCHES: usize = 1 << 16;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 63) as u8
    };
    let random: Vec<u8> = (0..BRANCHES).map(|_| bit()).collect();
    let (ones, zeros) = (vec![1; BRANCHES], vec![0; BRANCHES]);
    let regular = (branches(&ones)? + branches(&zeros)?) / 2.0;
    // Half of the random ones are guessed right.
    Some(((branches(&random)? - regular) * 2.0 / cycle_ns()?).max(0.0))
}

/// Nanoseconds a branch that each of these bytes decides.
fn branches(bytes: &[u8]) -> Option<f64> {
    // movzx eax, byte [rdi]; test eax, eax; jz +4; add r8, 1; inc rdi
    let body = [0x0f, 0xb6, 0x07, 0x85, 0xc0, 0x74, 0x04, 0x49, 0x83, 0xc0, 0x01, 0x48, 0xff, 0xc7];
    let code = Assembled::looping(&[], &body, &[])?;
    let at = bytes.as_ptr().cast_mut().cast::<u64>();
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        // SAFETY: the code keeps to the registers that `run` names and reads as many bytes as there are, one a round.
        unsafe { code.run(at, bytes.len() as u64, at, at) };
        least = least.min(started.elapsed().as_secs_f64());
    }
    Some(least * 1e9 / bytes.len() as f64)
}
