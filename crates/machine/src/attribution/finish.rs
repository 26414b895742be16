//! From counts to the run's record: who is charged with what the filter dropped, and that every table sums up.
//!
//! Sources and their rank. Misses, transactions and stalls: told by the model, reference by reference. References that
//! the filter dropped and instructions: counted by instruction over the whole window; how much of an instruction's was
//! done for idle and ticks is not counted, so it is split as its kept references are (or its function's, where it has
//! none). Tables by task and CPU take the dropped references and instructions from the tasks' reports and are fitted to
//! the sums by instruction; what they lack goes to their unattributed row.

use super::balance::{difference, fit, split};
use super::charged::{Charged, Cycles};
use super::cpu::Mode;
use super::ledger::References;
use super::names::Names;
use super::{Attribution, InsnRow, code_tables, data_tables, instructions, stack_tables, task_tables};
use crate::model::ModelTotals;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::{MissRatioCurve, ModelRecord, SCHEMA, Tally};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::side::{INSN_ATOMIC, INSN_KERNEL, INSN_NT, SideTables};
use nearmiss_record::symbols::Symbols;

/// What is known when a run has been through the model.
pub struct ModelledRun<'a> {
    /// The machine modelled, as cut down to the guest's CPUs.
    pub machine: Machine,
    /// The policy replayed.
    pub policy: Policy,
    /// Whose order.
    pub order: Order,
    /// Only user mode was modelled.
    pub only_user: bool,
    /// Facts a reader must know.
    pub notes: Vec<String>,
    /// What the model counted.
    pub totals: ModelTotals,
    /// Misses over cache sizes, where they were asked for.
    pub curve: Option<MissRatioCurve>,
    /// The tables beside the stream.
    pub side: &'a SideTables,
    /// Names.
    pub symbols: &'a Symbols,
}

impl Attribution {
    /// Names and adds up everything.
    pub fn into_record(mut self, run: ModelledRun<'_>) -> ModelRecord {
        self.add_repeats();
        for cpu in &mut self.cpus {
            cpu.settle(&mut self.tasks);
            cpu.settle_context(&mut self.visits);
        }
        let ModelledRun { machine, policy, order, only_user, mut notes, totals: model, curve, side, symbols } = run;
        let names = Names::new(symbols, side);
        let whole = model.sum();
        let charged = self.charge(&names, whole.instructions, only_user);
        let cycles = Cycles(machine.cycles_per_instruction);
        let levels = self.options.levels;

        let apart = |mode: Mode| {
            let (references, instructions) = &charged.apart[mode as usize];
            let mut tally = self.ledger.tally(self.modes[mode as usize], references, levels);
            tally.instructions = *instructions;
            cycles.set([&mut tally]);
            tally
        };
        let (idle, ticks) = (apart(Mode::Idle), apart(Mode::Tick));
        let mut code = code_tables::code(&self, &names, &charged);
        let mut totals = Tally { levels: vec![Default::default(); levels], ..Tally::default() };
        code.functions.iter().for_each(|row| totals += &row.tally);

        // What the model counted and told nobody: none, unless the two disagree; then it is in the open.
        let mut known = totals.clone();
        known += &idle;
        known += &ticks;
        let mut told_more = false;
        let untold = misses_only(&difference(&whole, &known, &mut told_more));
        totals += &untold;
        code.add_rest(&untold);
        if let Some(note) = disagreement(&whole, &known) {
            notes.push(note);
        }
        cycles.set([&mut totals]);
        code.set_cycles(&cycles);
        let stacks = stack_tables::stacks(&self, &names, &code, &totals);
        let instructions = instructions::instructions(&self, &names, &charged, &code, &cycles);

        let (tasks, cpus) = task_tables::tasks_and_cpus(&self, &charged, &totals, &cycles);
        let objects = data_tables::objects(&self, &names, &totals, &cycles);
        let shared_lines = data_tables::shared_lines(&self, &names);
        let nodes = self.nodes.iter().map(|n| self.ledger.tally(n.misses, &n.references, levels));
        let nodes = nodes.map(|mut node| {
            node.cycles = node.stall_cycles;
            node
        });
        let nodes = nodes.collect();
        self.add_notes(&mut notes, &charged, side);
        ModelRecord {
            schema: SCHEMA.to_owned(),
            machine,
            policy,
            order,
            only_user,
            notes,
            stalls: self.stalls.clone(),
            totals,
            idle,
            ticks,
            functions: code.functions,
            lines: code.lines,
            instructions,
            stacks,
            objects,
            tasks,
            cpus,
            nodes,
            page_offsets: self.page_offsets,
            sets: model.sets,
            blame: code_tables::blame(&names, &model.pollution),
            shared_lines,
            curve,
        }
    }

    /// Charges what the filter dropped, and instructions.
    fn charge(&self, names: &Names<'_>, instructions: u64, only_user: bool) -> Charged {
        let kept = |mode: Mode, id: usize| self.insns[mode as usize].get(id).copied().unwrap_or_default().references;
        let weight = |id: usize| [Mode::Command, Mode::Idle, Mode::Tick].map(|mode| kept(mode, id).all());
        let count = names.insns.len().max(self.insns.iter().map(Vec::len).max().unwrap_or(0));

        let mut by_function = vec![[0u64; 3]; names.symbols.functions.len().max(1)];
        for id in 0..count {
            let sum = &mut by_function[names.function(id as u32) as usize];
            sum.iter_mut().zip(weight(id)).for_each(|(sum, weight)| *sum += weight);
        }
        let counted = |id: usize| {
            let insn = names.insns.get(id)?;
            (!only_user || insn.flags & INSN_KERNEL == 0).then_some(insn)
        };
        let mut executed: Vec<u64> =
            (0..count).map(|id| counted(id).map_or(0, |i| i.executions.saturating_mul(u64::from(i.run)))).collect();
        let instructions_left = fit(&mut executed, instructions);

        let mut charged = Charged {
            references: (0..count).map(|id| kept(Mode::Command, id)).collect(),
            instructions: executed,
            instructions_left,
            apart: [(References::default(), 0); 3],
            dropped: [References::default(); 2],
            dropped_atomics: [0; 2],
            instructions_by_mode: [0; 2],
        };
        for mode in [Mode::Idle, Mode::Tick] {
            for cpu in &self.cpus {
                charged.apart[mode as usize].0.add(&cpu.apart[mode as usize]);
            }
        }
        for id in 0..count {
            let Some(insn) = counted(id) else { continue };
            let kernel = usize::from(insn.flags & INSN_KERNEL != 0);
            let mut weights = weight(id);
            if weights == [0; 3] {
                weights = by_function[names.function(id as u32) as usize];
            }
            let atomic = insn.flags & INSN_ATOMIC != 0;
            let parts = |amount| if kernel == 1 { split(amount, weights) } else { [amount, 0, 0] };
            let (loads, stores) = (parts(insn.load_hits), parts(insn.store_hits));
            let (seconds, executed) = (parts(insn.cont_hits), parts(charged.instructions[id]));
            for mode in 0..3 {
                let dropped = References {
                    loads: loads[mode] + if atomic { stores[mode] } else { 0 },
                    stores: if atomic { 0 } else { stores[mode] },
                    nt_stores: if insn.flags & INSN_NT != 0 { stores[mode] } else { 0 },
                    second_halves: seconds[mode],
                    fetches: 0,
                };
                if mode == Mode::Command as usize {
                    charged.references[id].add(&dropped);
                    charged.dropped[kernel].add(&dropped);
                    charged.dropped_atomics[kernel] += if atomic { stores[mode] } else { 0 };
                    charged.instructions_by_mode[kernel] += executed[mode];
                } else {
                    charged.apart[mode].0.add(&dropped);
                    charged.apart[mode].1 += executed[mode];
                }
            }
            charged.instructions[id] = executed[Mode::Command as usize];
        }
        charged
    }

    fn add_notes(&self, notes: &mut Vec<String>, charged: &Charged, side: &SideTables) {
        let mut note = |condition: bool, text: &dyn Fn() -> String| {
            if condition {
                notes.push(text());
            }
        };
        let all: u64 = charged.instructions.iter().sum::<u64>() + charged.instructions_left;
        note(charged.instructions_left * 100 > all, &|| {
            format!(
                "{} of {all} instructions are not known by place: they are in the unattributed row",
                charged.instructions_left
            )
        });
        note(self.stacks_full, &|| "more call stacks than are told apart: the rest is in the unattributed row".into());
        note(self.sharing.full, &|| "more shared lines than are told apart: later ones are left out".into());
        note(self.tracker.objects.full, &|| self.tracker.objects.limit_note().unwrap_or_default());
        note(self.lost_events > 0, &|| {
            format!("{} map events of the guest were lost: some objects and names are unknown", self.lost_events)
        });
        note(self.damaged_rings > 0, &|| "a map event ring was damaged: some objects and names are unknown".into());
        note(side.prefetches > 0, &|| {
            format!("{} prefetch instructions were executed; what they fetch is not modelled", side.prefetches)
        });
        note(side.lost_before_share > 0, &|| {
            format!(
                "{} times a line became shared after the filter had dropped repeats on it: those are counted, but in no order",
                side.lost_before_share
            )
        });
    }
}

/// The part of `rest` that the model alone counts.
fn misses_only(rest: &Tally) -> Tally {
    Tally { instructions: 0, loads: 0, stores: 0, line_accesses: 0, nt_stores: 0, cycles: 0, ..rest.clone() }
}

/// A sentence when model and attribution do not agree on what both count.
fn disagreement(whole: &Tally, known: &Tally) -> Option<String> {
    let misses = |t: &Tally| t.levels.iter().map(|l| l.misses()).sum::<u64>();
    let (model, told) = (
        [misses(whole), whole.bus.transactions(), whole.stall_cycles],
        [misses(known), known.bus.transactions(), known.stall_cycles],
    );
    (model != told).then(|| {
        format!(
            "the model counted {} misses, {} bus transactions and {} stall cycles, attribution was told of {}, {} and {}: \
             a fault in nearmiss, please report it",
            model[0], model[1], model[2], told[0], told[1], told[2]
        )
    })
}

impl InsnRow {
    pub(super) fn is_idle(&self) -> bool {
        self.misses == Default::default() && self.references == References::default()
    }
}
