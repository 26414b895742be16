//! A stream of records through the model with attribution listening: while it is recorded, or again from a kept trace.

use crate::evidence::Evidence;
use crate::names::names;
use crate::parts;
use crate::replay::{self, CaseError, Replayable};
use nearmiss_machine::attribution::{Attribution, DataSymbols, ModelledRun, Options, RecordedData};
use nearmiss_machine::curve::Curve;
use nearmiss_machine::describe;
use nearmiss_machine::model::{Model, ModelError, ModelOptions, ModelTotals};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Machine;
use nearmiss_record::maps::MapLog;
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::Record;
use nearmiss_record::run::{Filter, Manifest, RunDir};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use nearmiss_record::trace::{self, TraceHeader};
use std::sync::Arc;

/// Tables beside the counts of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Misses over cache sizes.
    pub curve: bool,
    /// Evidence for the remedies.
    pub evidence: bool,
}

/// The model of one run under way, without a policy.
pub struct Modelling {
    model: Model<(Attribution, Option<Curve>)>,
    filter: Filter,
    machine: Machine,
    order: Order,
    only_user: bool,
}

impl Modelling {
    /// Starts the modelling of a stream with this header. Errors: what the stream's filter cannot carry for the
    /// machine.
    pub fn new(
        machine: &Machine,
        options: &ModelOptions,
        header: &TraceHeader,
        data: Box<dyn DataSymbols>,
        tables: Tables,
    ) -> Result<Self, CaseError> {
        describe::can_replay(header.filter, machine).map_err(CaseError::Unfit)?;
        let attributed = Options::of(machine, header);
        let attributed = if tables.evidence { attributed.and_evidence(machine) } else { attributed };
        let curve = tables.curve.then(|| Curve::new(attributed.line_bytes));
        let observer = (Attribution::new(attributed, data), curve);
        Ok(Modelling {
            model: Model::new(machine, &Policy::default(), options, observer)?,
            filter: header.filter,
            machine: machine.clone(),
            order: options.order,
            only_user: header.only_user,
        })
    }

    /// Takes the next chunk.
    pub fn chunk(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), ModelError> {
        self.model.chunk(header, records)
    }

    /// Ends the stream.
    pub fn finish(self) -> Result<Modelled, ModelError> {
        let notes = self.model.notes().to_vec();
        let (totals, (attribution, curve)) = self.model.finish()?;
        let Modelling { filter, machine, order, only_user, .. } = self;
        Ok(Modelled { totals, attribution, curve, filter, notes, machine, order, only_user })
    }
}

/// A run that was modelled and waits for names.
pub struct Modelled {
    totals: ModelTotals,
    attribution: Attribution,
    curve: Option<Curve>,
    filter: Filter,
    notes: Vec<String>,
    machine: Machine,
    order: Order,
    only_user: bool,
}

impl Modelled {
    /// Returns which file lay where in which process.
    pub fn maps(&self) -> &MapLog {
        self.attribution.map_log()
    }

    /// How often a task of the command made way for another task.
    pub fn switches(&self) -> u64 {
        self.attribution.switches_of_command()
    }

    /// Returns the evidence of a model that was set to collect it.
    pub fn evidence(&self, side: &SideTables, symbols: &Symbols) -> Evidence {
        Evidence::of(&self.attribution, &self.totals.pollution, side, symbols)
    }

    /// Adds up and names.
    pub fn into_record(self, side: &SideTables, symbols: &Symbols) -> ModelRecord {
        let dropped = side.insns.iter().map(|insn| insn.load_hits + insn.store_hits).sum();
        let exact = self.filter.index_bits == 0;
        let mut record = self.attribution.into_record(ModelledRun {
            machine: self.machine,
            policy: Policy::default(),
            order: self.order,
            only_user: self.only_user,
            notes: self.notes,
            totals: self.totals,
            curve: self.curve.map(|curve| curve.finish(dropped, exact)),
            side,
            symbols,
        });
        let computing_cycles = record.totals.cycles.saturating_sub(record.totals.stall_cycles);
        record.ranges = parts::ranges(&record.parts, computing_cycles);
        record
    }
}

/// One kept run, about to be modelled on a machine that is cut down to the guest's CPUs.
#[derive(Clone, Copy)]
pub(crate) struct KeptRun<'a> {
    pub replayable: Replayable<'a>,
    pub machine: &'a Machine,
    pub symbols: &'a Symbols,
}

impl KeptRun<'_> {
    /// Models the run; `progress` receives the number of records so far. Also returns the tables beside the trace.
    pub fn model(
        &self,
        order: Order,
        tables: Tables,
        progress: &dyn Fn(u64),
    ) -> Result<(Modelled, SideTables), CaseError> {
        let mut trace = replay::open(self.replayable.run)?;
        let header = trace.header().clone();
        let options = self.replayable.options(&header, order);
        let data = Box::new(RecordedData::new(self.symbols));
        let mut modelling = Modelling::new(self.machine, &options, &header, data, tables)?;
        let side = trace.side().clone();
        let mut done = 0;
        trace::each_chunk(&mut trace, |head, records| {
            done += records.len() as u64;
            progress(done);
            modelling.chunk(head, records).map_err(CaseError::from)
        })?;
        Ok((modelling.finish()?, side))
    }

    /// Models the run for its record alone.
    pub fn record(&self, order: Order) -> Result<ModelRecord, CaseError> {
        let (modelled, side) = self.model(order, Tables::default(), &|_| ())?;
        Ok(modelled.into_record(&side, self.symbols))
    }
}

/// Models a kept trace again, on another machine or in another order. `progress` receives the number of records so far,
/// and of all.
pub fn model_again(
    run: &RunDir,
    machine: &Machine,
    order: Order,
    progress: &dyn Fn(u64, u64),
) -> Result<ModelRecord, CaseError> {
    let (symbols, nameless) = names(run)?;
    let machine = describe::cut(machine, replay::header(run)?.cpus);
    let whole = run.read_json::<Manifest>(nearmiss_record::run::MANIFEST)?.records;
    let code = Arc::default();
    let kept = KeptRun { replayable: Replayable::whole(run, &code), machine: &machine, symbols: &symbols };
    let tables = Tables { curve: true, evidence: false };
    let (modelled, side) = kept.model(order, tables, &|done| progress(done, whole))?;
    let mut record = modelled.into_record(&side, &symbols);
    record.notes.extend(nameless);
    Ok(record)
}
