//! Waits of a run: the stall cycles of its functions and objects, divided by the reason of the misses.
//!
//! A row's stall cycles are counted, those behind mispredicted branches apart; the misses of the others are not recorded
//! with them. So they are divided in proportion to misses × the cost of a miss of that level over a hit. The parts of a
//! row add up to its stall cycles, rounding aside.

use crate::machine::Machine;
use crate::model::{FunctionRow, MissClass, ModelRecord, ObjectKind, Tally};
use crate::words::percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a CPU waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The line was never in this cache: any cache would wait.
    FirstTouch,
    /// Another CPU wrote the bytes.
    TrueSharing,
    /// Another CPU wrote other bytes of the line.
    FalseSharing,
    /// An inclusive outer cache gave the line up.
    InclusionVictim,
    /// Too many lines in one set.
    Conflict,
    /// More lines in use than the cache has.
    Capacity,
    /// The memory of another node, over that of the own.
    RemoteMemory,
    /// Write buffers, a busy bus, invalidations.
    Other,
    /// The way of a branch that was predicted wrongly.
    Misprediction,
}

impl Reason {
    /// In the order of their numbers; the first six are those of [`MissClass`].
    pub const ALL: [Reason; 9] = [
        Reason::FirstTouch,
        Reason::TrueSharing,
        Reason::FalseSharing,
        Reason::InclusionVictim,
        Reason::Conflict,
        Reason::Capacity,
        Reason::RemoteMemory,
        Reason::Other,
        Reason::Misprediction,
    ];

    /// Whether another policy, layout or machine of the same size could save such a wait.
    pub fn can_be_saved(self) -> bool {
        !matches!(self, Reason::FirstTouch | Reason::Other | Reason::Misprediction)
    }

    /// For people; `level` is where most of it was waited for.
    pub fn words(self, level: &str) -> String {
        match self {
            Reason::FirstTouch => "first touches".to_owned(),
            Reason::TrueSharing => "true sharing".to_owned(),
            Reason::FalseSharing => "false sharing".to_owned(),
            Reason::InclusionVictim => format!("lines that went from {level} because an outer cache gave them up"),
            Reason::Conflict => format!("conflict misses of {level}"),
            Reason::Capacity => format!("capacity misses of {level}"),
            Reason::RemoteMemory => "the memory of another node".to_owned(),
            Reason::Other => "write buffers and the bus".to_owned(),
            Reason::Misprediction => "mispredicted branches".to_owned(),
        }
    }
}

/// Cycles by reason, indexed by `Reason as usize`.
pub type ByReason = [u64; Reason::ALL.len()];

/// One thing that the command waits for; *modelled*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Cycles waited.
    pub cycles: u64,
    /// Waited cycles as a share of the command's cycles.
    pub share: f64,
    /// Why.
    pub reason: Reason,
    /// Cache with the misses that cost most of the cycles, such as `L2`.
    pub level: String,
    /// The function that waits.
    pub function: String,
    /// Kernel code.
    pub kernel: bool,
    /// Object with most of the waits of this reason, if one has.
    pub object: Option<String>,
}

impl Wait {
    /// `31%: capacity misses of L3 in `lookup` on `table``.
    pub fn words(&self) -> String {
        let kernel = if self.kernel { "the kernel's " } else { "" };
        let on = self.object.as_ref().map_or(String::new(), |object| format!(" on `{object}`"));
        format!("{}: {} in {kernel}`{}`{on}", percent(self.share), self.reason.words(&self.level), self.function)
    }
}

/// Divides waits by reason; see the module's text.
#[derive(Debug)]
pub struct Waits<'a> {
    model: &'a ModelRecord,
    /// Outermost level at which a line was lost to another CPU.
    shared_level: usize,
}

impl<'a> Waits<'a> {
    /// Returns the waits of one model.
    pub fn new(model: &'a ModelRecord) -> Self {
        let lost = |level: &crate::model::LevelTally| {
            level.class(MissClass::TrueSharing).saturating_add(level.class(MissClass::FalseSharing)) > 0
        };
        let shared_level = model.totals.levels.iter().rposition(lost).unwrap_or(0);
        Waits { model, shared_level }
    }

    /// The stall cycles of a row by reason.
    pub fn of(&self, tally: &Tally) -> ByReason {
        let mut weights = [0.0; Reason::ALL.len()];
        for class in MissClass::ALL {
            weights[class as usize] = self.weights(tally, class).iter().sum();
        }
        let latency = &self.model.machine.latency;
        let further = latency.memory_remote_cycles.saturating_sub(latency.memory_local_cycles);
        weights[Reason::RemoteMemory as usize] = tally.bus.read_remote as f64 * f64::from(further);
        let whole: f64 = weights.iter().sum();
        let mut parts = ByReason::default();
        if whole == 0.0 {
            parts[Reason::Other as usize] = tally.waits();
        } else {
            parts = weights.map(|weight| (tally.waits() as f64 * weight / whole).round() as u64);
        }
        parts[Reason::Misprediction as usize] = tally.mispredicted_cycles;
        parts
    }

    /// Returns the cache with the costliest misses of a class for a row: an index into its levels.
    pub fn heaviest_level(&self, tally: &Tally, class: MissClass) -> usize {
        let weights = self.weights(tally, class);
        (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap_or(0)
    }

    /// The heaviest waits of the command's functions that something could save, heaviest first, at most `most`.
    pub fn heaviest(&self, most: usize) -> Vec<Wait> {
        let functions = self.model.functions.iter().filter(|row| !row.name.starts_with('['));
        let parts = functions.flat_map(|row| {
            let parts = self.of(&row.tally);
            Reason::ALL.map(|reason| (row, reason, parts[reason as usize]))
        });
        let mut heaviest: Vec<(&FunctionRow, Reason, u64)> =
            parts.filter(|(_, reason, cycles)| reason.can_be_saved() && *cycles > 0).collect();
        heaviest.sort_by(|(a, _, more), (b, _, less)| less.cmp(more).then_with(|| a.name.cmp(&b.name)));
        heaviest.truncate(most);
        heaviest.into_iter().map(|(row, reason, cycles)| self.wait(row, reason, cycles)).collect()
    }

    /// Returns a function's wait with its names. It takes a look at every object of the run.
    fn wait(&self, row: &FunctionRow, reason: Reason, cycles: u64) -> Wait {
        Wait {
            cycles,
            share: cycles as f64 / self.model.totals.cycles.max(1) as f64,
            reason,
            level: self.level_name(&row.tally, reason),
            function: row.name.clone(),
            kernel: row.kernel,
            object: self.object(reason),
        }
    }

    /// Reasons of a row's waits and their cycles, most first; a reason in words names the cache that most of it is about.
    pub fn reasons(&self, tally: &Tally) -> Vec<(String, u64)> {
        let parts = self.of(tally);
        let mut reasons: Vec<(Reason, u64)> = Reason::ALL.map(|reason| (reason, parts[reason as usize])).into();
        reasons.sort_by_key(|(_, cycles)| std::cmp::Reverse(*cycles));
        let words = |(reason, cycles): (Reason, u64)| (reason.words(&self.level_name(tally, reason)), cycles);
        reasons.into_iter().filter(|(_, cycles)| *cycles > 0).map(words).collect()
    }

    fn level_name(&self, tally: &Tally, reason: Reason) -> String {
        let class = MissClass::ALL.into_iter().find(|class| *class as usize == reason as usize);
        let level = class.map_or(0, |class| self.heaviest_level(tally, class));
        format!("L{}", level + 1)
    }

    /// The object that has most of the waits of a reason.
    fn object(&self, reason: Reason) -> Option<String> {
        let parts: Vec<u64> = self.model.objects.iter().map(|row| self.of(&row.tally)[reason as usize]).collect();
        let (at, most) = parts.iter().enumerate().max_by_key(|(_, cycles)| **cycles)?;
        let row = &self.model.objects[at];
        let known = !matches!(row.kind, ObjectKind::Unattributed | ObjectKind::Code);
        (known && *most > 0 && most.saturating_mul(2) >= parts.iter().sum()).then(|| row.name.clone())
    }

    /// Misses of a class × their cost, by level.
    fn weights(&self, tally: &Tally, class: MissClass) -> Vec<f64> {
        let sharing = matches!(class, MissClass::TrueSharing | MissClass::FalseSharing);
        let cost = |level: usize| {
            let plain = penalty_cycles(&self.model.machine, level, self.model.totals.levels.len());
            if sharing && level == self.shared_level {
                plain.max(transfer_cycles(&self.model.machine, level))
            } else {
                plain
            }
        };
        tally.levels.iter().enumerate().map(|(at, level)| level.class(class) as f64 * cost(at) as f64).collect()
    }
}

/// Cycles that a miss at `level` (0: the nearest of `levels`) costs over a hit, when the next level has the line. At
/// least 1: a miss weighs something even on a machine without latencies.
pub fn penalty_cycles(machine: &Machine, level: usize, levels: usize) -> u64 {
    let latency = &machine.latency;
    let here = latency.level_cycles.get(level).copied().unwrap_or(0);
    let next = if level + 1 < levels {
        latency.level_cycles.get(level + 1).copied().unwrap_or(here)
    } else {
        latency.memory_local_cycles
    };
    u64::from(next.saturating_sub(here)).max(1)
}

/// Cycles that it costs over a hit at `level` to take a line from another CPU that wrote it.
fn transfer_cycles(machine: &Machine, level: usize) -> u64 {
    let here = machine.latency.level_cycles.get(level).copied().unwrap_or(0);
    u64::from(machine.latency.core_modified_cycles.saturating_sub(here))
}
