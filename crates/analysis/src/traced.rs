//! A traced run, modelled on a machine.

use crate::baselines::Baselines;
use crate::evidence::Evidence;
use crate::modelling::{KeptRun, Tables};
use crate::names::names;
use crate::pass::{Job, one_pass};
use crate::placements::seeds;
use crate::replay::{self, CaseError, Listener, Replayable};
use nearmiss_machine::attribution::{Alias, Crowd};
use nearmiss_machine::describe;
use nearmiss_machine::model::{KnownCode, Pollution};
use nearmiss_machine::observer::Observer;
use nearmiss_machine::passing::Passing;
use nearmiss_record::finding::LEAST_GAIN;
use nearmiss_record::machine::{Cache, Machine};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::run::{self, Filter, Manifest, RunDir};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, OnceLock};

/// Page placements costed while the run is modelled: two replays without reasons take about as long as one with them.
const BESIDE: usize = 2;

/// Approximate number of records in a part of a long trace, unless another number is given.
const PART_RECORDS: u64 = 12_000_000;

/// A part of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracePart {
    /// Blocks from the trace's begin on.
    pub blocks: usize,
    /// Share of the whole trace.
    pub share: f64,
}

/// One run on one machine.
pub struct Traced {
    /// Directory of the run.
    pub run: RunDir,
    /// Manifest of the run.
    pub manifest: Manifest,
    /// Counts of the model, without a policy.
    pub model: ModelRecord,
    /// Model record in the modelled order, computed on first use.
    in_modelled_order: OnceLock<ModelRecord>,
    /// Names of the run's instructions.
    pub symbols: Symbols,
    /// Instructions and calling contexts of the run.
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
    /// Receives how much of a rehearsal is done, and the total.
    pub on_progress: Box<dyn Fn(usize, usize) + Send + Sync>,
    /// Held while a rehearsal goes on: each takes all CPUs.
    pub rehearsing: Mutex<()>,
    /// Names of the remedies with a suspicion in a first recording of the command, which this one replaced.
    pub suspected_before: BTreeSet<&'static str>,
    /// Whether what gains too little of the modelled cycles to count is rehearsed too.
    pub thorough: bool,
    /// Records at the begin of a trace, of at least twice as many, on which much may be compared before all are replayed.
    pub part_records: u64,
    /// Costs of the run as it was, under each placement used so far.
    pub(crate) baselines: Baselines,
    /// Upper bound of the share of the command's cycles that wait for other CPUs in any order, computed on first use.
    most_shared: OnceLock<f64>,
    /// Known code of the run, shared by its replays.
    code: Arc<KnownCode>,
}

/// A run with all that was written of it, and its evidence.
pub struct Recorded {
    /// Directory of the run.
    pub run: RunDir,
    /// Manifest of the run.
    pub manifest: Manifest,
    /// Counts of the model during the recording.
    pub model: ModelRecord,
    /// Names of the run's instructions.
    pub symbols: Symbols,
    /// Instructions and calling contexts of the run.
    pub side: SideTables,
    /// Evidence from the same model.
    pub evidence: Evidence,
    /// Facts about the run's code that the model found.
    pub code: Arc<KnownCode>,
}

impl Traced {
    /// CPU time of what was recorded, in nanoseconds of the modelled machine's clock.
    pub fn cpu_ns(&self) -> u64 {
        (self.model.totals.cycles as f64 * 1e3 / f64::from(self.machine().clock_mhz.max(1))) as u64
    }

    /// Takes a run that has just been recorded and modelled: it is not modelled again.
    pub fn recorded(recorded: Recorded) -> Self {
        let Recorded { run, manifest, model, symbols, side, evidence, code } = recorded;
        Traced {
            filter: manifest.filter,
            in_modelled_order: OnceLock::new(),
            pollution: evidence.pollution,
            crowds: evidence.crowds,
            conflict_waits: evidence.conflict_waits,
            aliases: evidence.aliases,
            on_progress: Box::new(|_, _| ()),
            rehearsing: Mutex::new(()),
            suspected_before: BTreeSet::new(),
            thorough: false,
            part_records: PART_RECORDS,
            baselines: Baselines::default(),
            most_shared: OnceLock::new(),
            code,
            run,
            manifest,
            model,
            symbols,
            side,
        }
    }

    /// Opens a run and models it again, on the machine and in the order it was recorded with unless others are given.
    /// `on_progress` receives the number of records modelled so far, and of all.
    pub fn open(
        run: &RunDir,
        machine: Option<&Machine>,
        order: Option<Order>,
        on_progress: &dyn Fn(u64, u64),
    ) -> Result<Self, CaseError> {
        let manifest: Manifest = run.read_json(run::MANIFEST)?;
        let (symbols, nameless) = names(run)?;
        let header = replay::header(run)?;
        let earlier = run.read_json::<ModelRecord>(run::MODEL);
        let order = order.unwrap_or(earlier.as_ref().map_or(Order::Recorded, |model| model.order));
        let cycles = earlier.as_ref().map_or(0, |model| model.totals.cycles);
        let may_share = header.cpus > 1 && earlier.as_ref().is_ok_and(|model| model.tasks_of_command() > 1);
        let machine = match machine {
            Some(machine) => machine.clone(),
            None => earlier?.machine,
        };
        let machine = describe::cut(&machine, header.cpus);
        let code = Arc::default();
        let kept = KeptRun { replayable: Replayable::whole(run, &code), machine: &machine, symbols: &symbols };
        let tables = Tables { curve: false, evidence: true };
        let (modelled, beside) = std::thread::scope(|scope| {
            let beside = several_cpus().then(|| scope.spawn(|| beside(kept, order, may_share, cycles)));
            let modelled = kept.model(order, tables, &|done| on_progress(done, manifest.records));
            (modelled, beside.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))))
        });
        let (modelled, side) = modelled?;
        let Beside { in_modelled_order, baselines, may_wait } = beside.transpose()?.unwrap_or_default();
        let evidence = modelled.evidence(&side, &symbols);
        let mut model = modelled.into_record(&side, &symbols);
        model.notes.extend(nameless);
        let most_shared = may_wait.map_or_else(OnceLock::new, |count| OnceLock::from(most_shared(&model, count)));
        Ok(Traced {
            in_modelled_order: in_modelled_order.map_or_else(OnceLock::new, OnceLock::from),
            baselines,
            most_shared,
            filter: header.filter,
            ..Self::recorded(Recorded { run: run.clone(), manifest, model, symbols, side, evidence, code })
        })
    }

    /// Replays the run as it was, for an observer that needs no reasons of misses. Returns the observer.
    pub fn listen<O: Observer>(&self, observer: O) -> Result<O, CaseError> {
        let listener = Listener { machine: self.machine().clone(), policy: Policy::RECORDED, observer };
        let mut listened = replay::in_one_pass(self.replayable(), self.model.order, vec![listener], &|| ())?;
        listened.pop().ok_or_else(replay::no_result)
    }

    pub(crate) fn replayable(&self) -> Replayable<'_> {
        Replayable::whole(&self.run, &self.code)
    }

    /// Returns the blocks at the begin of a long trace that suffice to compare large differences; none for a short
    /// trace.
    pub fn part(&self) -> Result<Option<TracePart>, CaseError> {
        if self.manifest.records < 2 * self.part_records {
            return Ok(None);
        }
        let all = replay::blocks(&self.run)?.max(1);
        let wanted = all as f64 * self.part_records as f64 / self.manifest.records as f64;
        let blocks = (wanted.ceil() as usize).clamp(1, all);
        Ok(Some(TracePart { blocks, share: blocks as f64 / all as f64 }))
    }

    /// Share of the command's cycles that wait for other CPUs in any order, at most.
    pub fn most_shared(&self) -> Result<f64, CaseError> {
        if let Some(share) = self.most_shared.get() {
            return Ok(*share);
        }
        let share = most_shared(&self.model, may_wait(&self.run, self.machine())?);
        Ok(*self.most_shared.get_or_init(|| share))
    }

    /// Returns the model's counts with consecutive slices of the recorder taken as simultaneous. The recorded order
    /// hides nearly all sharing: a CPU of the guest runs alone for a quarter of a million references.
    pub fn in_modelled_order(&self) -> Result<&ModelRecord, CaseError> {
        if let Some(modelled) = self.modelled_order() {
            return Ok(modelled);
        }
        let kept = KeptRun { replayable: self.replayable(), machine: self.machine(), symbols: &self.symbols };
        let modelled = kept.record(Order::Modelled)?;
        Ok(self.in_modelled_order.get_or_init(|| modelled))
    }

    /// The model's counts in the modelled order, if they were made.
    pub(crate) fn modelled_order(&self) -> Option<&ModelRecord> {
        if self.model.order == Order::Modelled { Some(&self.model) } else { self.in_modelled_order.get() }
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

/// Results that another CPU computes while one models the run.
#[derive(Default)]
struct Beside {
    in_modelled_order: Option<ModelRecord>,
    baselines: Baselines,
    /// References that may wait for other CPUs in the modelled order.
    may_wait: Option<u64>,
}

/// Computes the likely next request: the modelled order where much may wait for other CPUs in it, else the baselines
/// of the remedies' replays. `cycles`: the command's cycles in the earlier model.
fn beside(kept: KeptRun<'_>, order: Order, may_share: bool, cycles: u64) -> Result<Beside, CaseError> {
    let (mut beside, machine) = (Beside::default(), kept.machine);
    if may_share && order == Order::Recorded {
        let may_wait = may_wait(kept.replayable.run, machine)?;
        beside.may_wait = Some(may_wait);
        if may_wait as f64 * dearest_wait(machine) >= LEAST_GAIN * cycles as f64 {
            beside.in_modelled_order = Some(kept.record(Order::Modelled)?);
            return Ok(beside);
        }
    }
    let jobs = seeds(machine, BESIDE).into_iter().map(|seed| Job { machine, policy: &Policy::RECORDED, seed });
    let jobs: Vec<Job<'_>> = jobs.collect();
    let costs = one_pass(kept.replayable, order, &jobs, &[], &|| ())?;
    jobs.iter().zip(&costs).for_each(|(job, cost)| beside.baselines.keep(order, job.seed, cost));
    Ok(beside)
}

/// References of a run that may wait for other CPUs in the modelled order, at most.
fn may_wait(run: &RunDir, machine: &Machine) -> Result<u64, CaseError> {
    let mut passing = Passing::new(machine);
    replay::read(run, |head, records| passing.chunk(head, records))?;
    Ok(passing.may_wait())
}

/// Cycles that a reference waits for another CPU, at most: the bus may be taken by all the others first.
pub fn dearest_wait(machine: &Machine) -> f64 {
    let latency = &machine.latency;
    let line = [latency.core_clean_cycles, latency.core_modified_cycles, latency.remote_cache_cycles];
    let memory = [latency.memory_local_cycles, latency.memory_remote_cycles];
    let longest = line.into_iter().chain(memory).chain(contended(machine)).max().unwrap_or(0);
    let bus = u64::from(machine.bus.transaction_cycles) * u64::from(machine.topology.cpus());
    (u64::from(longest) + bus) as f64 * machine.shown_share()
}

/// Returns the cycles of single accesses to contended lines.
fn contended(machine: &Machine) -> impl Iterator<Item = u32> {
    machine.core.iter().flat_map(|core| {
        let figures = core.contended();
        let others = [figures.store_cycles, figures.atomic_cycles, figures.load_cycles];
        core.contended_store_cycles.into_iter().chain(others.into_iter().flatten())
    })
}

/// Returns the share of cycles that wait for other CPUs in the recorded order, or may wait for them in the modelled
/// one.
fn most_shared(model: &ModelRecord, may_wait: u64) -> f64 {
    let waits = model.stalls.coherence as f64 + may_wait as f64 * dearest_wait(&model.machine);
    waits / model.totals.cycles.max(1) as f64
}

fn several_cpus() -> bool {
    std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}
