//! A traced run, modelled on a machine.

use crate::replay::{self, CaseError};
use nearmiss_machine::attribution::{Alias, Attribution, Crowd, ModelledRun, Options, RecordedData};
use nearmiss_machine::describe;
use nearmiss_record::machine::{Cache, Machine};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::run::{self, Filter, Manifest, RunDir};
use nearmiss_record::symbols::Symbols;
use std::sync::Mutex;

/// One run on one machine.
pub struct Traced {
    /// Where it is kept.
    pub run: RunDir,
    /// What ran.
    pub manifest: Manifest,
    /// What the model counted, without a policy.
    pub model: ModelRecord,
    /// Names of its instructions.
    pub symbols: Symbols,
    /// Objects that crowd on few sets.
    pub crowds: Vec<Crowd>,
    /// Cycles that the command's references waited which had a conflict miss.
    pub conflict_waits: u64,
    /// Loads that wait for stores to the same offset of another page.
    pub aliases: Vec<Alias>,
    /// The filter that made the trace.
    pub filter: Filter,
    /// Hears how much of a rehearsal is done, and of how much.
    pub heard: Box<dyn Fn(usize, usize) + Send + Sync>,
    /// Held while a rehearsal goes on: each takes all CPUs.
    pub rehearsing: Mutex<()>,
}

impl Traced {
    /// Opens a run and models it again, on the machine and in the order it was recorded with unless others are given.
    /// `heard` hears how many records have been modelled, and of how many.
    pub fn open(
        run: &RunDir,
        machine: Option<&Machine>,
        order: Option<Order>,
        heard: &dyn Fn(u64, u64),
    ) -> Result<Self, CaseError> {
        let manifest: Manifest = run.read_json(run::MANIFEST)?;
        let symbols: Symbols = run.read_json(run::SYMBOLS)?;
        let header = replay::header(run)?;
        let earlier = run.read_json::<ModelRecord>(run::MODEL);
        let order = order.unwrap_or(earlier.as_ref().map_or(Order::Recorded, |model| model.order));
        let machine = match machine {
            Some(machine) => machine.clone(),
            None => earlier?.machine,
        };
        let machine = describe::cut(&machine, header.cpus);
        let options = Options::of(&machine, &header).and_evidence(&machine);
        let attribution = Attribution::new(options, Box::new(RecordedData::new(&symbols)));
        let replayed = replay::replay_heard(run, &machine, &Policy::default(), order, attribution, &|done| {
            heard(done, manifest.records);
        })?;
        let crowds = replayed.observer.crowds(&replayed.side, &symbols);
        let conflict_waits = replayed.observer.conflict_waits();
        let aliases = replayed.observer.aliases(&replayed.side, &symbols);
        let model = replayed.observer.into_record(ModelledRun {
            machine,
            policy: Policy::default(),
            order,
            only_user: header.only_user,
            notes: replayed.notes,
            totals: replayed.totals,
            curve: None,
            side: &replayed.side,
            symbols: &symbols,
        });
        Ok(Traced {
            run: run.clone(),
            manifest,
            model,
            symbols,
            crowds,
            conflict_waits,
            aliases,
            filter: header.filter,
            heard: Box::new(|_, _| ()),
            rehearsing: Mutex::new(()),
        })
    }

    /// The machine, cut down to the guest's CPUs.
    pub fn machine(&self) -> &Machine {
        &self.model.machine
    }

    /// The data or unified cache of a level, nearest 0.
    pub fn cache(&self, level: usize) -> Option<&Cache> {
        self.machine().data_cache(level + 1)
    }
}
