//! From counts to the run's record: charges dropped references to their owners, and makes every table sum up.
//!
//! Sources and their rank. Misses, transactions and stalls: reported by the model, reference by reference. References
//! that the filter dropped and instructions: counted by instruction over the whole window, and split between the
//! command, others, idle and ticks (`charged.rs`). Tables by task and CPU take them from the tasks' reports and are
//! fitted to the sums by instruction; the remainder goes to their unattributed row.

use super::charged::{Charged, Cycles};
use super::ledger::References;
use super::names::Names;
use super::{Attribution, InsnRow, code_tables, data_tables, instructions, sharing_tables, stack_tables, task_tables};
use crate::model::ModelTotals;
use crate::owner::Owner;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::{FunctionRow, MissRatioCurve, ModelRecord, SCHEMA, Tally};
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use nearmiss_record::words::grouped;

/// State of a run after its replay in the model.
pub struct ModelledRun<'a> {
    /// The machine modelled, as cut down to the guest's CPUs.
    pub machine: Machine,
    /// The policy replayed.
    pub policy: Policy,
    /// Order of the slices: recorded or modelled.
    pub order: Order,
    /// Only user mode was modelled.
    pub only_user: bool,
    /// Facts for the reader.
    pub notes: Vec<String>,
    /// Counts of the model.
    pub totals: ModelTotals,
    /// Misses over cache sizes, if requested.
    pub curve: Option<MissRatioCurve>,
    /// The tables beside the stream.
    pub side: &'a SideTables,
    /// Names.
    pub symbols: &'a Symbols,
}

impl Attribution {
    /// Names and adds up everything.
    pub fn into_record(mut self, run: ModelledRun<'_>) -> ModelRecord {
        self.end_stream();
        let ModelledRun { machine, policy, order, only_user, mut notes, totals: model, curve, side, symbols } = run;
        let names = Names::new(symbols, side);
        let whole = model.sum();
        let mut charged = Charged::new(&self, &names, whole.instructions, only_user);
        let codes = self.codes.take();
        let cycles = Cycles::of(&machine, codes.as_ref(), &mut charged);
        let [idle, ticks] =
            [Owner::Idle, Owner::Ticks].map(|owner| self.kept_apart(owner, &charged, (&cycles, &whole)));

        let mut code = code_tables::code(&self, &names, &charged.command);
        let mut totals = self.sum_of(&code.functions);
        let (mut other_functions, _) = code_tables::functions(&self, &names, Owner::Others, &charged.others);
        cycles.set(other_functions.iter_mut().map(|row| &mut row.tally));
        let others = self.sum_of(&other_functions);

        // Counts of the model that no observer received: none, unless the two disagree; then it is in the open.
        let mut known = totals.clone();
        [&others, &idle, &ticks].into_iter().for_each(|part| known += part);
        let mut attributed_more = false;
        let unattributed = misses_only(&whole.without(&known, &mut attributed_more));
        totals += &unattributed;
        code.add_rest(&unattributed);
        if let Some(note) = disagreement(&whole, &known) {
            notes.push(note);
        }
        cycles.set([&mut totals]);
        code.set_cycles(&cycles);
        let stacks = stack_tables::stacks(&self, &names, &code, &totals);
        let instructions = instructions::instructions(&self, &names, &charged.command, codes.as_ref(), &code, &cycles);

        let (tasks, cpus) = task_tables::tasks_and_cpus(&self, &charged, [&totals, &others], &cycles);
        let objects = data_tables::objects(&self, &names, &totals, &cycles);
        let shared_lines = sharing_tables::shared_lines(&self, &names);
        let nodes = self.tallies_of_nodes();
        self.add_notes(&mut notes, &charged, side);
        let sets = self.pressure.of_command(model.sets, &machine);
        ModelRecord {
            schema: SCHEMA.to_owned(),
            machine,
            policy,
            order,
            only_user,
            notes,
            stalls: self.parts.stalls(),
            parts: self.parts.several(),
            ranges: None,
            totals,
            others,
            idle,
            ticks,
            functions: code.functions,
            other_functions,
            lines: code.lines,
            instructions,
            stacks,
            callers: self.callers.rows(&names),
            objects,
            tasks,
            cpus,
            nodes,
            page_offsets: self.page_offsets,
            sets,
            blame: code_tables::blame(&names, &model.pollution),
            shared_lines,
            curve,
            translation: model.translation,
        }
    }

    /// Ends what is under way: repeats, references and contexts that no later reference has settled.
    fn end_stream(&mut self) {
        self.add_repeats();
        self.settle_all();
        self.cpus.iter_mut().for_each(|cpu| cpu.settle_context(&mut self.visits));
    }

    /// Counts of an owner without a table, with its share of all cycles.
    fn kept_apart(&self, owner: Owner, charged: &Charged, (cycles, whole): (&Cycles, &Tally)) -> Tally {
        let (references, instructions) = &charged.apart[owner as usize];
        let mut tally = self.ledger.tally(self.apart[owner as usize], references, self.options.levels);
        tally.instructions = *instructions;
        cycles.spread([&mut tally], whole);
        tally
    }

    fn sum_of(&self, rows: &[FunctionRow]) -> Tally {
        let mut sum = Tally { levels: vec![Default::default(); self.options.levels], ..Tally::default() };
        rows.iter().for_each(|row| sum += &row.tally);
        sum
    }

    fn tallies_of_nodes(&self) -> Vec<Tally> {
        let tally = |node: &InsnRow| {
            let mut tally = self.ledger.tally(node.misses, &node.references, self.options.levels);
            tally.cycles = tally.stall_cycles;
            tally
        };
        self.nodes.iter().map(tally).collect()
    }

    /// How often a task of the command made way for another task.
    pub fn switches_of_command(&self) -> u64 {
        self.running.switches()
    }

    /// The references that an instruction made and the filter kept.
    pub(super) fn kept(&self, owner: Owner, id: usize) -> References {
        self.insns[owner as usize].get(id).copied().unwrap_or_default().references
    }

    fn add_notes(&self, notes: &mut Vec<String>, charged: &Charged, side: &SideTables) {
        let mut note = |condition: bool, text: &dyn Fn() -> String| {
            if condition {
                notes.push(text());
            }
        };
        let left = charged.command.instructions_left;
        let all: u64 = charged.command.instructions.iter().sum::<u64>() + left;
        note(left * 100 > all, &|| {
            format!("{left} of {all} instructions are not known by place: they are in the unattributed row")
        });
        note(self.stacks_full, &|| "more call stacks than are kept apart: the rest is in the unattributed row".into());
        note(self.sharing.full, &|| "more shared lines than are kept apart: later ones are left out".into());
        note(self.tracker.objects.full, &|| self.tracker.objects.limit_note().unwrap_or_default());
        note(self.lost_events > 0, &|| {
            format!("{} map events of the guest were lost: some objects and names are unknown", self.lost_events)
        });
        note(self.damaged_rings > 0, &|| "a map event ring was damaged: some objects and names are unknown".into());
        note(side.prefetches > 0, &|| {
            format!("{} prefetch instructions were executed; what they fetch is not modelled", side.prefetches)
        });
        note(side.lost_before_share * 1000 > all, &|| {
            format!(
                "{} lines became shared after repeated accesses to them had been dropped: these are counted, but in no \
                 order.",
                grouped(side.lost_before_share)
            )
        });
    }
}

/// The part of `rest` that the model alone counts.
fn misses_only(rest: &Tally) -> Tally {
    Tally { instructions: 0, loads: 0, stores: 0, line_accesses: 0, nt_stores: 0, cycles: 0, ..rest.clone() }
}

/// Returns a sentence if model and attribution disagree on counts that both have.
fn disagreement(whole: &Tally, known: &Tally) -> Option<String> {
    let misses = |t: &Tally| t.levels.iter().map(|l| l.misses()).sum::<u64>();
    let (model, attributed) = (
        [misses(whole), whole.bus.transactions(), whole.stall_cycles],
        [misses(known), known.bus.transactions(), known.stall_cycles],
    );
    (model != attributed).then(|| {
        format!(
            "the model counted {} misses, {} bus transactions and {} stall cycles, attribution received {}, {} and {}: \
             a fault in nearmiss, please report it",
            model[0], model[1], model[2], attributed[0], attributed[1], attributed[2]
        )
    })
}
