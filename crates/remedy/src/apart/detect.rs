//! Which lines of the command's move between CPUs at a cost.

use super::finding::Apart;
use super::subject::Subject;
use crate::case::Case;
use crate::contract::{Suspicion, Suspicions};
use crate::replay::{self, CaseError, header};
use crate::traced::Traced;
use nearmiss_machine::attribution::{Attribution, ModelledRun, Options, RecordedData};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{Order, Policy};
use std::sync::Arc;

/// True sharing dominates where so much of the command's cycles waits for it: every program that communicates has some.
/// Two threads of Python that pass a queue's items to each other have 11%, of the interpreter's lock.
pub(super) const DOMINATES: f64 = 0.15;

/// Everything in a run that lines of its own may help with, and true sharing that dominates.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let case = case.traced()?;
    let tasks = case.model.tasks.iter().filter(|task| task.of_command).count();
    if case.model.cpus.len() < 2 || tasks < 2 {
        return Ok(Vec::new());
    }
    let modelled = Arc::new(in_modelled_order(case)?);
    let dominates = |subject: &Subject| {
        subject.apart_cycles() > 0 || subject.stall_cycles() as f64 >= DOMINATES * modelled.totals.cycles.max(1) as f64
    };
    let subjects = Subject::all(&modelled).into_iter().filter(dominates);
    Ok(subjects.map(|subject| Box::new(Apart::new(subject, Arc::clone(&modelled))) as Box<dyn Suspicion>).collect())
}

/// What the model counts where slices that followed one another in the recorder are taken as simultaneous. The recorded
/// order hides nearly all sharing: a CPU of the guest runs alone for a quarter of a million references.
fn in_modelled_order(case: &Traced) -> Result<ModelRecord, CaseError> {
    if case.model.order == Order::Modelled {
        return Ok(case.model.clone());
    }
    let header = header(&case.run)?;
    let options = Options::of(case.machine(), &header);
    let attribution = Attribution::new(options, Box::new(RecordedData::new(&case.symbols)));
    let policy = Policy::default();
    let replayed = replay::replay(&case.run, case.machine(), &policy, Order::Modelled, attribution)?;
    Ok(replayed.observer.into_record(ModelledRun {
        machine: case.machine().clone(),
        policy,
        order: Order::Modelled,
        only_user: header.only_user,
        notes: replayed.notes,
        totals: replayed.totals,
        curve: None,
        side: &replayed.side,
        symbols: &case.symbols,
    }))
}
