//! A stream through the model with attribution listening: while it is recorded, or again from a kept trace.

use crate::progress;
use anyhow::Context;
use nearmiss_machine::attribution::{Attribution, ModelledRun, Options, RecordedData};
use nearmiss_machine::curve::Curve;
use nearmiss_machine::describe;
use nearmiss_machine::model::{Model, ModelError, ModelOptions, ModelTotals};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Machine;
use nearmiss_record::maps::MapLog;
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::Record;
use nearmiss_record::run::{self, Filter, Manifest, RunDir};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::{DataSymbols, Symbols};
use nearmiss_record::trace::{self, TraceHeader, TraceReader};
use nearmiss_remedy::{Evidence, names};

/// Order in which the records of several CPUs enter the model.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OrderArg {
    /// As they were executed: causal; what it shows of sharing is a lower bound
    Recorded,
    /// The slices of a round taken as simultaneous, merged by modelled cycles
    Modelled,
}

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::Recorded => Order::Recorded,
            OrderArg::Modelled => Order::Modelled,
        }
    }
}

/// The model of one run under way.
pub struct Modelling {
    model: Model<(Attribution, Option<Curve>)>,
    filter: Filter,
    machine: Machine,
    policy: Policy,
    order: Order,
    only_user: bool,
}

impl Modelling {
    /// Starts the modelling of a stream with this header. Errors: what the stream's filter cannot carry for the
    /// machine.
    pub fn new(
        machine: &Machine,
        policy: &Policy,
        order: Order,
        header: &TraceHeader,
        data: Box<dyn DataSymbols>,
        curve: bool,
        evidence: bool,
    ) -> anyhow::Result<Self> {
        describe::can_replay(header.filter, machine).map_err(anyhow::Error::msg)?;
        let tables = Options::of(machine, header);
        let tables = if evidence { tables.and_evidence(machine) } else { tables };
        let curve = curve.then(|| Curve::new(tables.line_bytes));
        let observer = (Attribution::new(tables, data), curve);
        Ok(Modelling {
            model: Model::new(machine, policy, &ModelOptions::of(header, order), observer)?,
            filter: header.filter,
            machine: machine.clone(),
            policy: policy.clone(),
            order,
            only_user: header.only_user,
        })
    }

    /// Takes the next chunk.
    pub fn chunk(&mut self, header: &ChunkHeader, records: &[Record]) -> Result<(), ModelError> {
        self.model.chunk(header, records)
    }

    /// The stream is over.
    pub fn finish(self) -> Result<Modelled, ModelError> {
        let notes = self.model.notes().to_vec();
        let (totals, (attribution, curve)) = self.model.finish()?;
        Ok(Modelled {
            totals,
            attribution,
            curve,
            filter: self.filter,
            notes,
            machine: self.machine,
            policy: self.policy,
            order: self.order,
            only_user: self.only_user,
        })
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
    policy: Policy,
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
        self.attribution.into_record(ModelledRun {
            machine: self.machine,
            policy: self.policy,
            order: self.order,
            only_user: self.only_user,
            notes: self.notes,
            totals: self.totals,
            curve: self.curve.map(|curve| curve.finish(dropped, exact)),
            side,
            symbols,
        })
    }
}

/// The machine that a run was recorded for which was cut off before its model kept that.
pub fn recorded_for(run: &RunDir, manifest: &Manifest) -> anyhow::Result<Machine> {
    let named = manifest.machine.as_str();
    if let Some(Ok(preset)) = describe::preset(named).map(|preset| preset.machine()) {
        return Ok(preset);
    }
    let here =
        nearmiss_host::NAMES.iter().find_map(|name| nearmiss_host::load(name).ok().filter(|it| it.name == named));
    let path = run.path().display();
    here.with_context(|| {
        format!(
            "{path}: this run was cut off before it was modelled, and its machine is neither a preset nor this one; -m \
             MACHINE models its trace: `nearmiss report {path} -m host`"
        )
    })
}

/// Models a kept trace again: on another machine, in another order, under another policy.
pub fn model_again(run: &RunDir, machine: &Machine, policy: &Policy, order: Order) -> anyhow::Result<ModelRecord> {
    let file = run.file(run::TRACE);
    if !file.is_file() {
        anyhow::bail!("{}: this run kept no trace to model again; record it without --no-trace", run.path().display());
    }
    run.has_whole_trace()?;
    let mut trace = TraceReader::open(&file)?;
    let (symbols, nameless) = names(run)?;
    let header = trace.header().clone();
    let machine = describe::cut(machine, header.cpus);
    let mut modelling =
        Modelling::new(&machine, policy, order, &header, Box::new(RecordedData::new(&symbols)), true, false)?;
    let side = trace.side().clone();
    let (progress, mut done) = (progress::of("modelling"), 0);
    let whole = run.read_json::<Manifest>(run::MANIFEST)?.records;
    trace::each_chunk(&mut trace, |head, records| {
        done += records.len() as u64;
        progress.at(done, whole);
        modelling.chunk(head, records).map_err(anyhow::Error::from)
    })?;
    drop(progress);
    let mut record = modelling.finish()?.into_record(&side, &symbols);
    record.notes.extend(nameless);
    Ok(record)
}
