//! A traced run, modelled on a machine.

use crate::replay::{self, CaseError, Replayed};
use nearmiss_machine::attribution::{Alias, Attribution, Crowd, ModelledRun, Options, RecordedData};
use nearmiss_machine::describe;
use nearmiss_machine::model::Pollution;
use nearmiss_record::machine::{Cache, Machine};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::run::{self, Filter, Manifest, RunDir};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use nearmiss_record::trace::TraceHeader;
use std::panic::resume_unwind;
use std::sync::{Mutex, OnceLock};

/// One run on one machine.
pub struct Traced {
    /// Where it is kept.
    pub run: RunDir,
    /// What ran.
    pub manifest: Manifest,
    /// What the model counted, without a policy.
    pub model: ModelRecord,
    /// The same in the modelled order, once somebody asked.
    in_modelled_order: OnceLock<ModelRecord>,
    /// Names of its instructions.
    pub symbols: Symbols,
    /// Its instructions and calling contexts.
    pub side: SideTables,
    /// Which call sites evicted what others needed, without a policy: every pair, most misses first.
    pub pollution: Vec<Pollution>,
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
        let may_share = header.cpus > 1 && earlier.as_ref().is_ok_and(|model| model.tasks_of_command() > 1);
        let machine = match machine {
            Some(machine) => machine.clone(),
            None => earlier?.machine,
        };
        let machine = describe::cut(&machine, header.cpus);
        let evidence = Options::of(&machine, &header).and_evidence(&machine);
        let modelling = Modelling { run, machine: &machine, symbols: &symbols, header: &header };
        let heard = |done| heard(done, manifest.records);
        let (modelled, in_modelled_order) = std::thread::scope(|scope| {
            let other = (may_share && order == Order::Recorded && several_cpus())
                .then(|| scope.spawn(|| modelling.record(Order::Modelled)));
            let modelled = modelling.model(order, evidence, &heard);
            (modelled, other.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))))
        });
        let Modelled { replayed, order } = modelled?;
        let crowds = replayed.observer.crowds(&replayed.side, &symbols);
        let conflict_waits = replayed.observer.conflict_waits();
        let aliases = replayed.observer.aliases(&replayed.side, &symbols);
        let (side, pollution) = (replayed.side.clone(), replayed.totals.pollution.clone());
        let model = modelling.named(Modelled { replayed, order });
        Ok(Traced {
            run: run.clone(),
            manifest,
            model,
            in_modelled_order: in_modelled_order.transpose()?.map_or_else(OnceLock::new, OnceLock::from),
            symbols,
            side,
            pollution,
            crowds,
            conflict_waits,
            aliases,
            filter: header.filter,
            heard: Box::new(|_, _| ()),
            rehearsing: Mutex::new(()),
        })
    }

    /// What the model counts where slices that followed one another in the recorder are taken as simultaneous. The
    /// recorded order hides nearly all sharing: a CPU of the guest runs alone for a quarter of a million references.
    pub fn in_modelled_order(&self) -> Result<&ModelRecord, CaseError> {
        if self.model.order == Order::Modelled {
            return Ok(&self.model);
        }
        if let Some(modelled) = self.in_modelled_order.get() {
            return Ok(modelled);
        }
        let header = replay::header(&self.run)?;
        let modelling = Modelling { run: &self.run, machine: self.machine(), symbols: &self.symbols, header: &header };
        let modelled = modelling.record(Order::Modelled)?;
        Ok(self.in_modelled_order.get_or_init(|| modelled))
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

/// One run, about to be modelled without a policy.
struct Modelling<'a> {
    run: &'a RunDir,
    machine: &'a Machine,
    symbols: &'a Symbols,
    header: &'a TraceHeader,
}

/// A run whose counts have not been named.
struct Modelled {
    replayed: Replayed<Attribution>,
    order: Order,
}

impl Modelling<'_> {
    fn model(&self, order: Order, options: Options, heard: &dyn Fn(u64)) -> Result<Modelled, CaseError> {
        let attribution = Attribution::new(options, Box::new(RecordedData::new(self.symbols)));
        let replayed = replay::replay_heard(self.run, self.machine, &Policy::default(), order, attribution, heard)?;
        Ok(Modelled { replayed, order })
    }

    /// Without evidence.
    fn record(&self, order: Order) -> Result<ModelRecord, CaseError> {
        let options = Options::of(self.machine, self.header);
        Ok(self.named(self.model(order, options, &|_| ())?))
    }

    fn named(&self, modelled: Modelled) -> ModelRecord {
        let Modelled { replayed, order } = modelled;
        replayed.observer.into_record(ModelledRun {
            machine: self.machine.clone(),
            policy: Policy::default(),
            order,
            only_user: self.header.only_user,
            notes: replayed.notes,
            totals: replayed.totals,
            curve: None,
            side: &replayed.side,
            symbols: self.symbols,
        })
    }
}

fn several_cpus() -> bool {
    std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}
