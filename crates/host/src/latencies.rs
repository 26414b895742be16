//! Latencies of this host: measured where that is plausible, else usual of its processors.

use super::Calibration;
use super::bounds::Family;
use super::measured::Sources;
use nearmiss_record::machine::Latency;
use nearmiss_record::model::MAX_LEVELS;

const MEASURED: &str = "measured here by a pointer chase";
const PING: &str = "measured here by a line passed between two CPUs";
/// Largest valid time of a level's walk, as a share of memory's time. A slower walk did not measure the level: other
/// programs, or other guests on a virtual machine, had taken its lines.
const MOST_OF_MEMORY: f64 = 0.5;

/// Returns nanoseconds as cycles of a clock, 1 at least.
pub fn in_cycles(clock_mhz: u32) -> impl Fn(f64) -> u32 + Copy {
    move |ns| ((ns * f64::from(clock_mhz) / 1000.0).round() as u32).max(1)
}

/// Inputs of the latencies.
pub struct Latencies<'a> {
    /// Plausible figures, if any were measured.
    pub calibration: Option<&'a Calibration>,
    /// Figures that were measured and are assumed.
    pub replaced: Option<&'a Sources>,
    /// Usual figures.
    pub family: &'a Family,
    /// NUMA nodes.
    pub nodes: u32,
    /// Clock of the cycles.
    pub clock_mhz: u32,
}

impl Latencies<'_> {
    /// Returns the latencies of a machine with so many levels of caches, and notes the source of each.
    pub fn of_levels(&self, levels: usize, sources: &mut Sources) -> Latency {
        let level_cycles = self.levels(levels, sources);
        let last = level_cycles.last().copied().unwrap_or(1);
        let cycles = in_cycles(self.clock_mhz);
        let measured = |figure: fn(&Calibration) -> Option<f64>| self.calibration.and_then(figure);
        let mut latency = |figure: &str, ns: Option<f64>, how: &str, otherwise: u32, why: &str| {
            sources.insert(format!("latency.{figure}"), if ns.is_some() { how } else { why }.to_owned());
            ns.map(cycles).unwrap_or(otherwise)
        };
        let has_nodes = self.nodes > 1;
        let usual = cycles(self.family.memory_ns.usual);
        let local = latency("memory_local", measured(|c| c.memory_local_ns), MEASURED, usual, &self.usual()).max(last);
        let why = if has_nodes { "assumed: 1.7 times local" } else { "assumed: one node, as local" };
        let otherwise = if has_nodes { local * 17 / 10 } else { local };
        let remote = latency("memory_remote", measured(|c| c.memory_remote_ns), MEASURED, otherwise, why).max(local);
        let why = "assumed: twice the last level";
        let modified = latency("core_modified", measured(|c| c.core_to_core_ns), PING, last * 2, why);
        let clean = latency("core_clean", None, "", modified, "assumed: as modified");
        let why = if has_nodes { "assumed: as remote memory" } else { "assumed: one node, as core_modified" };
        let otherwise = if has_nodes { remote } else { modified };
        let remote_cache = latency("remote_cache", measured(|c| c.remote_cache_ns), PING, otherwise, why);
        Latency {
            level_cycles,
            core_clean_cycles: clean,
            core_modified_cycles: modified,
            remote_cache_cycles: remote_cache,
            memory_local_cycles: local,
            memory_remote_cycles: remote,
        }
    }

    fn usual(&self) -> String {
        format!("assumed: usual of {}", self.family.name)
    }

    fn levels(&self, levels: usize, sources: &mut Sources) -> Vec<u32> {
        let cycles = in_cycles(self.clock_mhz);
        let memory_ns = self.calibration.and_then(|c| c.memory_local_ns).unwrap_or(f64::INFINITY);
        let mut level_cycles: Vec<u32> = Vec::new();
        for level in 1..=levels {
            let typical = self.family.level_cycles[(level - 1).min(MAX_LEVELS - 1)].usual as u32;
            let figure = format!("latency.L{level}");
            let plausible = !self.replaced.is_some_and(|replaced| replaced.contains_key(&figure));
            let ns = self.calibration.and_then(|c| c.level_ns.get(level - 1).copied()).filter(|_| plausible);
            let (own, from) = match ns {
                None => (typical, self.usual()),
                Some(ns) if ns > MOST_OF_MEMORY * memory_ns => {
                    let measured = cycles(ns);
                    let why = format!("others hold most of this level: measured {measured} cycles, nearly memory's");
                    (typical, format!("{}; {why}", self.usual()))
                }
                Some(ns) => (cycles(ns), MEASURED.to_owned()),
            };
            sources.insert(figure, from);
            // Noise must not make an outer level nearer than an inner one.
            level_cycles.push(own.max(level_cycles.last().copied().unwrap_or(1)));
        }
        level_cycles
    }
}
