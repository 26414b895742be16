//! Charges of the counts by instruction that have no record: references that the filter dropped, and instructions.
//!
//! An instruction's charges are split between the command, others, idle and ticks as its kept references are (or its
//! function's, where it has none). A kept reference stands for fewer dropped ones where caches are cold, so the weights
//! of each are scaled until its instructions sum to its tasks' reports at their switches, which are exact.

use super::Attribution;
use super::balance::{fit, split};
use super::ledger::References;
use super::names::Names;
use crate::owner::{Class, Owner};
use nearmiss_code::CodeMap;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::Tally;
use nearmiss_record::side::{INSN_ATOMIC, INSN_KERNEL, INSN_NT, Insn};
use nearmiss_record::units::InsnId;

/// Instructions of less than one part of all are not looked at: each look takes some 20 µs.
const LEAST_LOOKED_AT: u64 = 50_000;
/// Rounds of scaling: each brings the sums closer, and mixed kernel code settles within a few.
const ROUNDS: usize = 20;
/// No weight is scaled by more, or by less than one part of it: reports that contradict the kept references do not win.
const MOST_SCALED: f64 = 64.0;
/// Whole numbers stand for scaled weights of this fraction.
const PRECISION: f64 = 1024.0;

/// Weights by [`Owner`].
type Weights = [u64; 4];

/// References and instructions charged to the command, or to others.
#[derive(Clone, Debug, Default)]
pub(super) struct Charges {
    /// References kept and dropped, by instruction id.
    pub references: Vec<References>,
    /// Instructions, by instruction id.
    pub instructions: Vec<u64>,
    /// Cycles of the instructions while they hit, by instruction id, in 1/65536 cycles; empty: all take the same.
    pub computed: Vec<u64>,
    /// Instructions that no instruction of the table accounts for.
    pub instructions_left: u64,
    /// References that the filter dropped, by user and kernel.
    pub dropped: [References; 2],
    /// Dropped stores that are atomics, by user and kernel: the tasks report them as stores.
    pub dropped_atomics: [u64; 2],
    /// Instructions, by user and kernel.
    pub instructions_by_mode: [u64; 2],
}

/// Counts by instruction once the dropped references are charged.
pub(super) struct Charged {
    /// Part of the command.
    pub command: Charges,
    /// Part of other tasks.
    pub others: Charges,
    /// References and instructions by [`Owner`]; of idle and ticks alone.
    pub apart: [(References, u64); 4],
}

impl Charged {
    /// Charges `instructions` in all, and the dropped references.
    pub fn new(attribution: &Attribution, names: &Names<'_>, instructions: u64, only_user: bool) -> Self {
        let count = names.insns.len().max(attribution.insns.iter().map(Vec::len).max().unwrap_or(0));
        let counted = |id: usize| {
            let insn = names.insns.get(id)?;
            (!only_user || insn.flags & INSN_KERNEL == 0).then_some(insn)
        };
        let mut executed: Vec<u64> =
            (0..count).map(|id| counted(id).map_or(0, |i| i.executions.saturating_mul(u64::from(i.run)))).collect();
        let instructions_left = fit(&mut executed, instructions);
        let mut weights = weights(attribution, names, count);
        for kernel in [0, 1] {
            let of_mode = |id: usize| counted(id).is_some_and(|insn| is_kernel(insn) == kernel);
            scale(&mut weights, &executed, of_mode, wanted(attribution, kernel));
        }
        let part = |owner: Owner, instructions_left| Charges {
            references: (0..count).map(|id| attribution.kept(owner, id)).collect(),
            instructions: vec![0; count],
            instructions_left,
            ..Charges::default()
        };
        let mut charged = Charged {
            command: part(Owner::Command, instructions_left),
            others: part(Owner::Others, 0),
            apart: Default::default(),
        };
        for owner in [Owner::Idle, Owner::Ticks] {
            for cpu in &attribution.cpus {
                charged.apart[owner as usize].0.add(&cpu.references[owner as usize]);
            }
        }
        for id in 0..count {
            if let Some(insn) = counted(id) {
                charged.split(id, insn, executed[id], weights[id]);
            }
        }
        charged
    }

    /// Splits one instruction's references and executions that have no record.
    fn split(&mut self, id: usize, insn: &Insn, executed: u64, weights: Weights) {
        let [loads, stores] = [insn.load_hits, insn.store_hits].map(|amount| split(amount, weights));
        let [seconds, executed] = [insn.cont_hits, executed].map(|amount| split(amount, weights));
        let (kernel, atomic) = (is_kernel(insn), insn.flags & INSN_ATOMIC != 0);
        for owner in 0..4 {
            let dropped = References {
                loads: loads[owner] + if atomic { stores[owner] } else { 0 },
                stores: if atomic { 0 } else { stores[owner] },
                nt_stores: if insn.flags & INSN_NT != 0 { stores[owner] } else { 0 },
                second_halves: seconds[owner],
                fetches: 0,
            };
            let part = match owner {
                0 => &mut self.command,
                1 => &mut self.others,
                _ => {
                    self.apart[owner].0.add(&dropped);
                    self.apart[owner].1 += executed[owner];
                    continue;
                }
            };
            part.references[id].add(&dropped);
            part.instructions[id] = executed[owner];
            part.dropped[kernel].add(&dropped);
            part.dropped_atomics[kernel] += if atomic { stores[owner] } else { 0 };
            part.instructions_by_mode[kernel] += executed[owner];
        }
    }
}

fn is_kernel(insn: &Insn) -> usize {
    usize::from(insn.flags & INSN_KERNEL != 0)
}

/// Returns each instruction's weights: its kept references, or its function's. User mode is never idle's and never a
/// tick's.
fn weights(attribution: &Attribution, names: &Names<'_>, count: usize) -> Vec<Weights> {
    let kept = |id: usize| {
        let user = names.insns.get(id).is_some_and(|insn| is_kernel(insn) == 0);
        [Owner::Command, Owner::Others, Owner::Idle, Owner::Ticks].map(|owner| match owner {
            Owner::Idle | Owner::Ticks if user => 0,
            _ => attribution.kept(owner, id).all(),
        })
    };
    let mut by_function = vec![Weights::default(); names.symbols.functions.len().max(1)];
    for id in 0..count {
        let sum = &mut by_function[names.function(id as u32) as usize];
        sum.iter_mut().zip(kept(id)).for_each(|(sum, weight)| *sum += weight);
    }
    let of = |id: usize| match kept(id) {
        [0, 0, 0, 0] => by_function[names.function(id as u32) as usize],
        weights => weights,
    };
    (0..count).map(of).collect()
}

/// Returns the instructions of user mode or of the kernel that each should sum to, given its sum by kept references:
/// the reports of the tasks of each class, less their part of the ticks. Interrupts on idle CPUs are others'.
fn wanted(attribution: &Attribution, kernel: usize) -> impl Fn([f64; 4]) -> [f64; 4] + use<> {
    let reported = attribution.reported.map(|class| class[kernel] as f64);
    let kept = attribution.kept_by.map(|class| class.map(|references| references as f64));
    move |sums| {
        let [own, others, nobodys, ticks] =
            [Owner::Command, Owner::Others, Owner::Idle, Owner::Ticks].map(|w| w as usize);
        let a_tick = sums[ticks] / kept.iter().map(|class| class[ticks]).sum::<f64>().max(1.0);
        let rest = |class: Class| (reported[class as usize] - kept[class as usize][ticks] * a_tick).max(0.0);
        let [idle, interrupts] = [nobodys, others].map(|owner| kept[Class::Idle as usize][owner]);
        let interrupting = rest(Class::Idle) * interrupts / (idle + interrupts).max(1.0);
        let mut wanted = [0.0; 4];
        wanted[own] = rest(Class::Command);
        wanted[others] = rest(Class::Other) + interrupting;
        wanted[nobodys] = rest(Class::Idle) - interrupting;
        wanted[ticks] = sums[ticks];
        wanted
    }
}

/// Scales the weights of some instructions so that their charges sum to `wanted` of the sums.
fn scale(
    weights: &mut [Weights],
    executed: &[u64],
    chosen: impl Fn(usize) -> bool,
    wanted: impl Fn([f64; 4]) -> [f64; 4],
) {
    let chosen: Vec<usize> = (0..weights.len()).filter(|id| chosen(*id) && executed[*id] > 0).collect();
    let mut factors = [1.0; 4];
    let goal = wanted(sums(weights, executed, &chosen, factors));
    if goal[..2] == [0.0; 2] {
        return;
    }
    for _ in 0..ROUNDS {
        let sums = sums(weights, executed, &chosen, factors);
        for ((factor, sum), goal) in factors.iter_mut().zip(sums).zip(goal) {
            if sum > 0.0 {
                *factor = (*factor * goal / sum).clamp(1.0 / MOST_SCALED, MOST_SCALED);
            }
        }
    }
    for id in chosen {
        let own = weights[id];
        weights[id] = std::array::from_fn(|i| (own[i] as f64 * factors[i] * PRECISION).round() as u64);
    }
}

/// Instructions of each under scaled weights.
fn sums(weights: &[Weights], executed: &[u64], chosen: &[usize], factors: [f64; 4]) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for id in chosen {
        let scaled: [f64; 4] = std::array::from_fn(|i| weights[*id][i] as f64 * factors[i]);
        let whole: f64 = scaled.iter().sum();
        if whole > 0.0 {
            sums.iter_mut().zip(scaled).for_each(|(sum, part)| *sum += executed[*id] as f64 * part / whole);
        }
    }
    sums
}

/// Cycles of rows, so that they sum to the total's regardless of the rounding.
pub(super) enum Cycles {
    /// All instructions take so many.
    Even(f64),
    /// Cycles by instruction, from [`Charges::computed`], in `Tally::cycles`.
    Computed,
}

impl Cycles {
    /// Takes each instruction's cycles from its code, if it is known.
    pub fn of(machine: &Machine, codes: Option<&CodeMap>, charged: &mut Charged) -> Self {
        let Some(codes) = codes else { return Cycles::Even(machine.cycles_per_instruction) };
        let usual = (machine.cycles_per_instruction * 65536.0).round() as u32;
        for part in [&mut charged.command, &mut charged.others] {
            let least = part.instructions.iter().sum::<u64>() / LEAST_LOOKED_AT;
            let takes = |(id, instructions): (usize, &u64)| {
                let looked_at =
                    (*instructions > least).then(|| codes.settled_cycles_per_instruction(InsnId(id as u32)));
                instructions.saturating_mul(looked_at.flatten().unwrap_or(usual).into())
            };
            part.computed = part.instructions.iter().enumerate().map(takes).collect();
        }
        Cycles::Computed
    }

    /// Sets `cycles` of consecutive rows of one table of instructions.
    pub fn set<'a>(&self, rows: impl IntoIterator<Item = &'a mut Tally>) {
        match self {
            Cycles::Even(each) => even(rows, *each),
            Cycles::Computed => {
                let (mut sum, mut before) = (0u64, 0u64);
                for row in rows {
                    sum = sum.saturating_add(row.cycles);
                    row.cycles = (sum >> 16) - before + row.stall_cycles;
                    before = sum >> 16;
                }
            }
        }
    }

    /// Sets `cycles` of consecutive rows that have a number of instructions, but not which: the `whole` has both.
    pub fn spread<'a>(&self, rows: impl IntoIterator<Item = &'a mut Tally>, whole: &Tally) {
        match self {
            Cycles::Even(each) => even(rows, *each),
            Cycles::Computed => {
                let computed = whole.cycles.saturating_sub(whole.stall_cycles);
                let (mut instructions, mut before) = (0u64, 0u64);
                for row in rows {
                    instructions += row.instructions;
                    let share = u128::from(computed) * u128::from(instructions) / u128::from(whole.instructions.max(1));
                    let now = u64::try_from(share).unwrap_or(u64::MAX);
                    row.cycles = now.saturating_sub(before) + row.stall_cycles;
                    before = now;
                }
            }
        }
    }
}

/// A product that is whole but for the precision of its factor is whole: parts must not sum to more than all.
const ROUNDING: f64 = 1e-6;

fn even<'a>(rows: impl IntoIterator<Item = &'a mut Tally>, each: f64) {
    let (mut instructions, mut before) = (0u64, 0u64);
    for row in rows {
        instructions += row.instructions;
        let now = (instructions as f64 * each + ROUNDING) as u64;
        row.cycles = now.saturating_sub(before) + row.stall_cycles;
        before = now;
    }
}
