//! A kept trace, read again: through the model, under any policy and with any observer, or without a model.

use nearmiss_machine::describe;
use nearmiss_machine::model::{KnownCode, Model, ModelError, ModelOptions, ModelTotals, Parted, Parting};
use nearmiss_machine::observer::{NullObserver, Observer};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::logs::LogError;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::reference::Record;
use nearmiss_record::run::{self, RunDir, RunError};
use nearmiss_record::side::SideTables;
use nearmiss_record::trace::{self, TraceError, TraceHeader, TraceReader};
use std::path::PathBuf;
use std::sync::Arc;

/// Why a run cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The run's files cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run's trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A log of the observation cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There is no trace.
    #[error("{0}: this run kept no trace to rehearse on; record it with `nearmiss trace` and without --no-trace")]
    NoTrace(PathBuf),
    /// The model refuses the machine, the policy or the trace.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The trace does not carry the requested part.
    #[error("{0}")]
    Unfit(String),
}

/// The head of a run's trace.
pub fn header(run: &RunDir) -> Result<TraceHeader, CaseError> {
    Ok(open(run)?.header().clone())
}

pub(crate) fn open(run: &RunDir) -> Result<TraceReader, CaseError> {
    let file = run.file(run::TRACE);
    if !file.is_file() {
        return Err(CaseError::NoTrace(run.path().to_owned()));
    }
    run.has_whole_trace()?;
    Ok(TraceReader::open(&file)?)
}

/// A run, and what replays of it have found out of its code.
#[derive(Clone, Copy)]
pub(crate) struct Replayable<'a> {
    /// Run with the trace.
    pub run: &'a RunDir,
    /// Answers that need not be found again.
    pub code: &'a Arc<KnownCode>,
    /// Blocks of the trace that are replayed, from its begin on; more than there are: all.
    pub blocks: usize,
}

impl<'a> Replayable<'a> {
    /// A whole run.
    pub fn whole(run: &'a RunDir, code: &'a Arc<KnownCode>) -> Self {
        Replayable { run, code, blocks: usize::MAX }
    }

    /// Options of a model of this run, which knows the run's code.
    pub fn options(&self, trace: &TraceHeader, order: Order) -> ModelOptions {
        ModelOptions { code: Some(Arc::clone(self.code)), ..ModelOptions::of(trace, order) }
    }
}

/// One of several replays in one pass over a trace.
pub(crate) struct Listener<O> {
    /// Cut down to the guest's CPUs.
    pub machine: Machine,
    /// Change of the replay.
    pub policy: Policy,
    /// Observer of the replay.
    pub observer: O,
}

/// Replays a run several times in one pass over its trace, for observers that need no reasons of misses
/// ([`ModelOptions::reasons`]): the trace is read once, and the replays are independent. `progress` is called for each
/// block of the trace that a replay has finished. Returns the observers.
pub(crate) fn in_one_pass<O: Observer>(
    replayable: Replayable<'_>,
    order: Order,
    listeners: Vec<Listener<O>>,
    progress: &dyn Fn(),
) -> Result<Vec<O>, CaseError> {
    let mut trace = open(replayable.run)?;
    let options = replayable.options(trace.header(), order).without_reasons();
    let model = |listener: Listener<O>| {
        describe::can_replay(options.filter, &listener.machine).map_err(CaseError::Unfit)?;
        Ok(Model::new(&listener.machine, &listener.policy, &options, listener.observer)?)
    };
    let mut models = listeners.into_iter().map(model).collect::<Result<Vec<_>, CaseError>>()?;
    // Block by block, so that each model has its own memory at hand for a while.
    trace::first_blocks(&mut trace, replayable.blocks, |block| {
        for model in &mut models {
            block.chunks().try_for_each(|(head, records)| model.chunk(head, records))?;
            progress();
        }
        Ok::<_, CaseError>(())
    })?;
    models.into_iter().map(|model| Ok(model.finish()?.1)).collect()
}

pub(crate) fn no_result() -> CaseError {
    CaseError::Unfit("a replay ended without a result".to_owned())
}

/// The tables beside the stream of a run's trace.
pub fn side(run: &RunDir) -> Result<SideTables, CaseError> {
    Ok(open(run)?.side().clone())
}

/// Blocks of a run's trace.
pub fn blocks(run: &RunDir) -> Result<usize, CaseError> {
    Ok(open(run)?.blocks())
}

/// Reads a run's trace, record by record, without any model.
pub fn read(run: &RunDir, mut take: impl FnMut(&ChunkHeader, &[Record])) -> Result<(), CaseError> {
    trace::each_chunk(&mut open(run)?, |head, records| {
        take(head, records);
        Ok(())
    })
}

/// Takes a run's trace apart by task.
pub fn part(run: &RunDir, mut parting: Parting) -> Result<Parted, CaseError> {
    trace::each_chunk(&mut open(run)?, |head, records| parting.chunk(head, records).map_err(CaseError::from))?;
    Ok(parting.finish())
}

/// Replays a run under a policy, on a machine that is cut down to the guest's CPUs, with the reasons of its misses.
/// Returns the model's totals.
pub fn totals(run: &RunDir, machine: &Machine, policy: &Policy, order: Order) -> Result<ModelTotals, CaseError> {
    let mut trace = open(run)?;
    let header = trace.header().clone();
    describe::can_replay(header.filter, machine).map_err(CaseError::Unfit)?;
    let mut model = Model::new(machine, policy, &ModelOptions::of(&header, order), NullObserver)?;
    trace::each_chunk(&mut trace, |head, records| model.chunk(head, records).map_err(CaseError::from))?;
    Ok(model.finish()?.0)
}
