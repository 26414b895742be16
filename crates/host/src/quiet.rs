//! Calmness of this machine during a measurement.

use nearmiss_record::machine::Noise;
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Ticks a second of /proc/stat, on every Linux of today.
const TICKS: f64 = 100.0;
/// CPUs that others may use on a small machine.
const LITTLE: f64 = 0.15;
/// Share of the CPUs of a large machine that others may use: they share caches and channels, though no CPU.
const LITTLE_OF_ALL: f64 = 0.02;
/// A measurement may wait this share of the time for its CPU.
const LITTLE_WAITING: f64 = 0.15;
/// Takes of one figure may lie this much apart, as a share of their median.
const LITTLE_APART: f64 = 0.5;
/// Shortest time that ticks of 10 ms measure.
const SHORTEST_S: f64 = 0.1;
const STEAL: usize = 7;

/// The kernel's counts at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuCounts {
    /// Seconds since some moment.
    pub at_s: f64,
    /// Seconds of CPU time that this process had.
    pub own_s: f64,
    /// Seconds that all CPUs worked, for whomever, since the machine started.
    pub worked_s: Option<f64>,
    /// Seconds that a hypervisor kept CPUs for others.
    pub stolen_s: Option<f64>,
    /// Tasks that run or wait for a CPU, without the one that looks.
    pub other_tasks: Option<u32>,
}

impl CpuCounts {
    /// A look at this machine.
    pub fn now() -> CpuCounts {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        let own = clock_gettime(ClockId::ProcessCPUTime);
        CpuCounts {
            at_s: START.elapsed().as_secs_f64(),
            own_s: own.tv_sec as f64 + own.tv_nsec as f64 * 1e-9,
            ..CpuCounts::under(Path::new("/"))
        }
    }

    /// The counts of `ROOT/proc/stat`.
    pub fn under(root: &Path) -> CpuCounts {
        let stat = std::fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
        let ticks = ticks(&stat);
        let running = stat.lines().find_map(|line| line.strip_prefix("procs_running ")?.trim().parse::<u32>().ok());
        // user nice system idle iowait irq softirq steal guest guest_nice: guests are counted as users too.
        let worked =
            ticks.iter().take(STEAL).enumerate().filter(|(at, _)| !(3..=4).contains(at)).map(|(_, ticks)| ticks);
        CpuCounts {
            worked_s: (ticks.len() > STEAL).then(|| worked.sum::<f64>() / TICKS),
            stolen_s: ticks.get(STEAL).map(|ticks| ticks / TICKS),
            other_tasks: running.map(|tasks| tasks.saturating_sub(1)),
            ..CpuCounts::default()
        }
    }
}

/// The disturbances of a machine between two looks.
pub fn between(before: &CpuCounts, after: &CpuCounts) -> Noise {
    let elapsed = (after.at_s - before.at_s).max(SHORTEST_S);
    let own = after.own_s - before.own_s;
    let hundredths = |value: f64| (value.max(0.0) * 100.0).round() / 100.0;
    let worked = before.worked_s.zip(after.worked_s).map(|(before, after)| after - before);
    let stolen = before.stolen_s.zip(after.stolen_s).map(|(before, after)| after - before);
    Noise {
        others_cpus: worked.map(|worked| hundredths((worked - own) / elapsed)),
        stolen_cpus: stolen.map(|stolen| hundredths(stolen / elapsed)),
        other_tasks: before.other_tasks.zip(after.other_tasks).map(|(before, after)| before.min(after)),
        waited_share: Some(hundredths(1.0 - own / elapsed)),
        spread: None,
        caution: None,
    }
}

/// CPUs that others use now, or that a hypervisor keeps for others, *measured* for a tenth of a second. Programs that this
/// process started count as others.
pub fn taken_cpus() -> f64 {
    let before = CpuCounts::now();
    std::thread::sleep(Duration::from_secs_f64(SHORTEST_S));
    let noise = between(&before, &CpuCounts::now());
    noise.others_cpus.unwrap_or_default() + noise.stolen_cpus.unwrap_or_default()
}

/// Names the excess on a machine of so many CPUs; none if the machine was quiet.
pub fn noisy(noise: &Noise, cpus: usize) -> Option<String> {
    let little = (cpus as f64 * LITTLE_OF_ALL).max(LITTLE);
    let percent = |share: f64| (share * 100.0).round();
    let parts = [
        noise.others_cpus.filter(|busy| *busy > little).map(|busy| format!("others kept {busy} of {cpus} CPUs busy")),
        noise.stolen_cpus.filter(|kept| *kept > little).map(|kept| format!("a hypervisor kept {kept} CPUs away")),
        // A task for each CPU leaves none free.
        noise
            .other_tasks
            .filter(|tasks| *tasks as usize >= cpus.max(1))
            .map(|tasks| format!("{tasks} other {} ran or waited", if tasks == 1 { "task" } else { "tasks" })),
        noise
            .waited_share
            .filter(|share| *share > LITTLE_WAITING)
            .map(|share| format!("it had no CPU for {}% of the time", percent(share))),
        noise
            .spread
            .filter(|spread| *spread > LITTLE_APART)
            .map(|spread| format!("takes of one figure lie {}% apart", percent(spread))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Ticks that the hypervisor kept CPUs of this machine for others, since it started.
pub fn stolen() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    ticks(&stat).get(STEAL).map(|ticks| *ticks as u64)
}

/// The first line of /proc/stat: all CPUs.
fn ticks(stat: &str) -> Vec<f64> {
    let all = stat.lines().next().unwrap_or_default();
    all.split_whitespace().skip(1).map_while(|ticks| ticks.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(root: &Path, stat: &str, at_s: f64, own_s: f64) -> CpuCounts {
        std::fs::create_dir_all(root.join("proc")).expect("made");
        std::fs::write(root.join("proc/stat"), stat).expect("written");
        CpuCounts { at_s, own_s, ..CpuCounts::under(root) }
    }

    fn after_two_seconds(ticks: &str, running: u32, own_s: f64) -> Noise {
        let dir = tempfile::tempdir().expect("a directory");
        let before = look(dir.path(), "cpu  100 0 50 900 0 5 5 10 7 0\nprocs_running 9\n", 10.0, 1.0);
        let stat = format!("cpu  {ticks} 0 0\ncpu0 1 2 3\nprocs_running {running}\n");
        between(&before, &look(dir.path(), &stat, 12.0, 1.0 + own_s))
    }

    #[test]
    fn a_calm_machine_is_quiet() {
        // 200 ticks for itself, 10 for others, 4 stolen.
        let noise = after_two_seconds("300 0 60 1000 0 5 5 14", 1, 1.98);
        assert_eq!((noise.others_cpus, noise.stolen_cpus, noise.other_tasks), (Some(0.06), Some(0.02), Some(0)));
        assert_eq!((noise.waited_share, noisy(&noise, 2)), (Some(0.01), None));
    }

    #[test]
    fn each_noise_is_named() {
        let noise = after_two_seconds("440 0 60 900 0 5 5 100", 8, 1.0);
        assert_eq!(
            noisy(&Noise { spread: Some(0.7), ..noise }, 2).expect("noise"),
            "others kept 1.25 of 2 CPUs busy, a hypervisor kept 0.45 CPUs away, 7 other tasks ran or waited, it had no CPU \
             for 50% of the time, takes of one figure lie 70% apart"
        );
    }

    #[test]
    fn a_large_machine_may_do_more_beside() {
        let noise = Noise { others_cpus: Some(0.9), other_tasks: Some(3), ..Noise::default() };
        assert_eq!(noisy(&noise, 64), None);
        assert_eq!(noisy(&noise, 8).expect("noise"), "others kept 0.9 of 8 CPUs busy");
    }

    #[test]
    fn a_kernel_without_figures_leaves_the_waiting() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(CpuCounts::under(dir.path()), CpuCounts::default());
        let noise = between(&CpuCounts::default(), &CpuCounts { at_s: 4.0, own_s: 1.0, ..CpuCounts::default() });
        assert_eq!(noise, Noise { waited_share: Some(0.75), ..Noise::default() });
    }
}
