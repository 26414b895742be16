//! A command in the guest, modelled while it is recorded.

mod error;
mod manifest;
mod reserve;

pub use error::RecordError;
pub use manifest::ends;

use crate::modelling::{Modelled, Modelling, Tables};
use crate::traced::Recorded;
use nearmiss_machine::model::{Counter, KnownCode, ModelOptions, ModelTotals};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::machine::Machine;
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::Record;
use nearmiss_record::run::{self, RunDir};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use nearmiss_record::trace::{TraceError, TraceHeader, TraceSummary, TraceWriter};
use nearmiss_record::units::Bytes;
use nearmiss_symbols::JitNames;
use nearmiss_tap::guest::{CommandStatus, GuestCommand};
use nearmiss_tap::session::{self, Session, Sink};
use reserve::Reserve;
use std::ffi::OsString;
use std::sync::Arc;

/// Stages of a recording, as they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The guest boots and runs the command.
    Running,
    /// The command and the guest have ended.
    Ended,
}

/// How a command is modelled, and what is kept.
pub struct TraceOptions<'a> {
    /// Machine, cut down to the guest's CPUs.
    pub machine: &'a Machine,
    /// Order of the records of several CPUs.
    pub order: Order,
    /// Count misses over cache sizes.
    pub curve: bool,
    /// Collect the evidence that a diagnosis needs.
    pub evidence: bool,
    /// Largest trace to keep; none: no trace is kept.
    pub most_trace: Option<Bytes>,
    /// The command, as typed by its user.
    pub command: &'a [OsString],
    /// Name of the guest's clock.
    pub clock: &'static str,
    /// Processes of this machine that run on in the guest, under their numbers.
    pub resumed: &'a [u32],
    /// Returns the notes that depend on how the guest was set up.
    pub notes: &'a dyn Fn(&session::Recorded) -> Vec<String>,
    /// Called as a stage begins.
    pub stage: &'a dyn Fn(Stage),
}

/// A command that was recorded.
pub struct Recording {
    /// The run, as it was written.
    pub recorded: Recorded,
    /// Exit status of the command, unless nearmiss brought its end about.
    pub status: Option<CommandStatus>,
    /// The window closed before the command's end, and the command was ended there.
    pub ended: bool,
    /// The guest had no memory left, in a sentence.
    pub out_of_memory: Option<String>,
}

/// Records a command, models it meanwhile, and writes the run: trace, manifest, names, model.
pub fn record(
    session: Session,
    command: GuestCommand,
    options: &TraceOptions<'_>,
    run: &RunDir,
) -> Result<Recording, RecordError> {
    let header = session.header().clone();
    let started = jiff::Timestamp::now();
    let mut trace = Kept::begin(run, &header, options.most_trace)?;
    let reserve = Reserve::hold(run)?;
    let tables = Tables { curve: options.curve, evidence: options.evidence };
    let code = Arc::default();
    let modelling = model_of(&session, options.machine, (options.order, &code), tables)?;
    let (recorded, modelling) = run_in_guest(session, command, modelling, options.stage, |head, records| {
        trace.chunk(head, records);
        Ok(())
    })?;
    drop(reserve);
    let (summary, mut notes) = trace.finish(&recorded)?;
    notes.extend((options.notes)(&recorded));
    notes.extend(recorded.notes.iter().cloned());
    let manifest = manifest::of(options, &recorded, &header, summary, notes, started);
    // From here on a kept trace can be modelled again, however this process ends.
    run.write_json(run::MANIFEST, &manifest)?;
    let modelled = modelling.finish()?;
    let symbols = names(&recorded, &modelled, options.resumed);
    run.write_json(run::SYMBOLS, &symbols)?;
    let evidence = options.evidence.then(|| modelled.evidence(&recorded.side, &symbols));
    let model = modelled.into_record(&recorded.side, &symbols);
    run.write_json(run::MODEL, &model)?;
    Ok(Recording {
        status: manifest::status(&recorded),
        ended: recorded.covered.ended,
        out_of_memory: recorded.exit.notes.first().filter(|_| recorded.exit.out_of_memory).cloned(),
        recorded: Recorded {
            run: run.clone(),
            manifest,
            model,
            symbols,
            side: recorded.side,
            evidence: evidence.unwrap_or_default(),
            code,
        },
    })
}

/// A command that was counted: no run is kept.
pub struct Counted {
    /// The model's counts.
    pub model: ModelRecord,
    /// Counts by instruction.
    pub side: SideTables,
    /// Names of the instructions.
    pub symbols: Symbols,
    /// Times that a task of the command made way for another task.
    pub switches: u64,
    /// The guest was not booted but restored.
    pub restored: bool,
    /// Release of the guest's kernel.
    pub kernel: String,
    /// The emulator and its version.
    pub emulator: String,
}

/// Records a command for its counts alone. `whole` refuses a recording without meaningful figures.
pub fn count(
    session: Session,
    command: GuestCommand,
    machine: &Machine,
    whole: impl FnOnce(&session::Recorded) -> Result<(), String>,
) -> Result<Counted, RecordError> {
    let modelling = model_of(&session, machine, (Order::Recorded, &Arc::default()), Tables::default())?;
    let (recorded, modelling) = run_in_guest(session, command, modelling, &|_| (), |_, _| Ok(()))?;
    whole(&recorded).map_err(RecordError::Refused)?;
    let modelled = modelling.finish()?;
    let symbols = names(&recorded, &modelled, &[]);
    Ok(Counted {
        switches: modelled.switches(),
        model: modelled.into_record(&recorded.side, &symbols),
        side: recorded.side,
        symbols,
        restored: recorded.restored,
        kernel: recorded.kernel,
        emulator: recorded.emulator,
    })
}

/// Records a command and counts its misses, and no more of it. Also returns the model's totals.
pub fn count_misses(
    session: Session,
    command: GuestCommand,
    machine: &Machine,
) -> Result<(session::Recorded, ModelTotals), RecordError> {
    let options = ModelOptions::of(session.header(), Order::Recorded);
    let mut counter = Counter::new(machine, &Policy::RECORDED, &options, NullObserver)?;
    let sink: &mut Sink<'_> = &mut |head, records| counter.chunk(head, records).map_err(|e| e.to_string());
    let recorded = session.record(command, sink)?;
    Ok((recorded, counter.finish()?.0))
}

/// Returns the model of a recording in this order, which keeps what it finds out of the code.
fn model_of(
    session: &Session,
    machine: &Machine,
    (order, code): (Order, &Arc<KnownCode>),
    tables: Tables,
) -> Result<Modelling, RecordError> {
    let header = session.header();
    let data = Box::new(session.data_symbols());
    let options = ModelOptions { code: Some(Arc::clone(code)), ..ModelOptions::of(header, order) };
    Ok(Modelling::new(machine, &options, header, data, tables)?)
}

/// Runs the command in the guest; the model and `also` take the stream.
fn run_in_guest(
    session: Session,
    command: GuestCommand,
    mut modelling: Modelling,
    stage: &dyn Fn(Stage),
    mut also: impl FnMut(&ChunkHeader, &[Record]) -> Result<(), String>,
) -> Result<(session::Recorded, Modelling), RecordError> {
    stage(Stage::Running);
    let sink: &mut Sink<'_> = &mut |head, records| {
        also(head, records)?;
        modelling.chunk(head, records).map_err(|e| e.to_string())
    };
    let recorded = session.record(command, sink)?;
    stage(Stage::Ended);
    Ok((recorded, modelling))
}

/// Code made at run time has names where its process runs here as well, or did, or wrote them down in the guest.
fn names(recorded: &session::Recorded, modelled: &Modelled, resumed: &[u32]) -> Symbols {
    let here = |pid| resumed.contains(&pid).then(|| JitNames::read(&JitNames::file(pid)))?;
    let made = |pid| recorded.exit.code_names.get(&pid).cloned().or_else(|| here(pid));
    nearmiss_symbols::resolve(nearmiss_symbols::Sources {
        insns: &recorded.side.insns,
        contexts: &recorded.side.contexts,
        call_slots: &recorded.call_slots,
        maps: modelled.maps(),
        kallsyms: &recorded.kallsyms,
        layout: recorded.layout.clone(),
        pages: recorded.pages.clone(),
        structures: recorded.structures.clone(),
        made: &made,
    })
}

/// The trace of a recording, as far as it is kept.
struct Kept {
    writer: Option<TraceWriter>,
    most: Bytes,
    /// Why the rest is not written.
    cut: Option<TraceError>,
}

impl Kept {
    fn begin(run: &RunDir, header: &TraceHeader, most: Option<Bytes>) -> Result<Self, RecordError> {
        let writer = most.map(|_| TraceWriter::create(&run.file(run::TRACE), header)).transpose()?;
        Ok(Kept { writer, most: most.unwrap_or_default(), cut: None })
    }

    /// Writes a chunk while there is room. A full disk costs the trace its end, not the run its model.
    fn chunk(&mut self, head: &nearmiss_record::abi::ChunkHeader, records: &[nearmiss_record::reference::Record]) {
        if let Some(trace) = &mut self.writer
            && self.cut.is_none()
            && trace.bytes() < self.most.0
            && let Err(error) = trace.chunk(head, records)
        {
            self.cut = Some(error);
        }
    }

    /// Ends the trace. Also returns the notes on what it lacks.
    fn finish(self, recorded: &session::Recorded) -> Result<(Option<TraceSummary>, Vec<String>), RecordError> {
        let Some(writer) = self.writer else { return Ok((None, Vec::new())) };
        let summary = writer.finish(&recorded.side)?;
        let cut = self.cut.as_ref().map(|error| format!("the trace is cut: {error}"));
        let limit = if cut.is_some() { String::new() } else { format!(" (--max-trace {})", self.most) };
        let lacks = (summary.records < recorded.records).then(|| {
            format!(
                "the trace keeps {} of {} records{limit}; the model saw all of them",
                summary.records, recorded.records
            )
        });
        Ok((Some(summary), cut.into_iter().chain(lacks).collect()))
    }
}
