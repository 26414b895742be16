//! Groups of CPUs that share something, as this machine's kernel lists them.

use crate::pair::level::SharedLevel;
use nearmiss_analysis::CannotEngage;
use nearmiss_workload::CpuSet;
use std::fs;
use std::path::Path;

/// All, the innermost first.
const LEVELS: [SharedLevel; 4] = [SharedLevel::Smt, SharedLevel::L2, SharedLevel::L3, SharedLevel::Node];

/// The CPUs that we may use, in groups that share something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    /// Level that they share.
    pub level: SharedLevel,
    /// Ascending; no CPU is in two.
    pub cpus: Vec<CpuSet>,
}

impl Domains {
    /// Finds the domains of a level; without one, of the innermost level at which there are two domains to choose
    /// between, else of the innermost at which CPUs share anything. `system` is `/sys/devices/system`. Errors: one CPU,
    /// or none that share.
    pub fn find(system: &Path, allowed: &CpuSet, wanted: Option<SharedLevel>) -> Result<Self, CannotEngage> {
        if allowed.len() < 2 {
            let why = format!("pair needs two CPUs at least; this process may use CPU {allowed} alone");
            return Err(CannotEngage::Parameters(why));
        }
        let sharing: Vec<Domains> = LEVELS
            .into_iter()
            .filter(|level| wanted.is_none_or(|wanted| wanted == *level))
            .map(|level| Domains { level, cpus: domains(system, allowed, level) })
            .filter(|found| found.cpus.iter().any(|cpus| cpus.len() > 1))
            .collect();
        let chosen = sharing.iter().find(|found| found.cpus.len() > 1).or(sharing.first());
        chosen.cloned().ok_or_else(|| CannotEngage::Parameters(nothing_shared(allowed, wanted)))
    }
}

/// Tasks for so many CPUs each: one after the other goes where it makes the least crowd.
pub fn sizes(tasks: usize, cpus: &[usize]) -> Vec<usize> {
    let mut sizes = vec![0usize; cpus.len()];
    for _ in 0..tasks {
        let crowd = |at: &usize| ((sizes[*at] + 1) as f64 / cpus[*at].max(1) as f64, *at);
        let least = (0..cpus.len()).min_by(|a, b| crowd(a).partial_cmp(&crowd(b)).unwrap_or(std::cmp::Ordering::Equal));
        least.into_iter().for_each(|at| sizes[at] += 1);
    }
    sizes
}

fn nothing_shared(allowed: &CpuSet, wanted: Option<SharedLevel>) -> String {
    match wanted {
        Some(level) => format!(
            "no two of the CPUs {allowed} share a domain of level {level} here; leave --domain out, and the innermost \
             level that is shared is taken"
        ),
        None => format!("the CPUs {allowed} share no domain that the kernel names; pair has nothing to choose"),
    }
}

fn domains(system: &Path, allowed: &CpuSet, level: SharedLevel) -> Vec<CpuSet> {
    let mut found: Vec<CpuSet> = Vec::new();
    for cpu in allowed.iter().filter(|cpu| system.join(format!("cpu/cpu{cpu}")).exists()) {
        let list = list(system, cpu, level).and_then(|list| list.trim().parse::<CpuSet>().ok());
        let sharing: CpuSet = list.unwrap_or_default().iter().filter(|other| allowed.contains(*other)).collect();
        if !sharing.is_empty() && !found.contains(&sharing) {
            found.push(sharing);
        }
    }
    found
}

/// Returns which CPUs a CPU shares a level with, as a list.
fn list(system: &Path, cpu: usize, level: SharedLevel) -> Option<String> {
    let of_cpu = system.join(format!("cpu/cpu{cpu}"));
    match level {
        SharedLevel::Smt => fs::read_to_string(of_cpu.join("topology/thread_siblings_list")).ok(),
        SharedLevel::L2 => cache(&of_cpu, "2"),
        SharedLevel::L3 => cache(&of_cpu, "3"),
        SharedLevel::Node => {
            let nodes = fs::read_dir(system.join("node")).ok()?.flatten();
            let lists = nodes.filter_map(|node| fs::read_to_string(node.path().join("cpulist")).ok());
            let has = |list: &String| list.trim().parse::<CpuSet>().is_ok_and(|cpus| cpus.contains(cpu));
            lists.into_iter().find(has)
        }
    }
}

fn cache(of_cpu: &Path, level: &str) -> Option<String> {
    let is = |index: &Path, file: &str, what: &str| {
        fs::read_to_string(index.join(file)).is_ok_and(|text| text.trim().starts_with(what))
    };
    let indexes = fs::read_dir(of_cpu.join("cache")).ok()?.flatten().map(|entry| entry.path());
    let index = indexes.into_iter().find(|index| is(index, "level", level) && !is(index, "type", "Instruction"))?;
    fs::read_to_string(index.join("shared_cpu_list")).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    /// A machine's sysfs: by CPU, its siblings and those it shares the second and third level with.
    pub fn machine(cpus: &[[&str; 3]]) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let write = |file: String, text: &str| {
            let file = place.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        for (cpu, [smt, l2, l3]) in cpus.iter().enumerate() {
            write(format!("cpu/cpu{cpu}/topology/thread_siblings_list"), smt);
            for (index, level, list) in [(0, "1", "9"), (2, "2", *l2), (3, "3", *l3)] {
                write(format!("cpu/cpu{cpu}/cache/index{index}/level"), level);
                write(format!("cpu/cpu{cpu}/cache/index{index}/type"), "Unified\n");
                write(format!("cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"), list);
            }
        }
        write("node/node0/cpulist".to_owned(), &format!("0-{}\n", cpus.len() - 1));
        place
    }

    fn found(
        place: &tempfile::TempDir,
        allowed: &str,
        wanted: Option<SharedLevel>,
    ) -> Result<(SharedLevel, Vec<String>), String> {
        let domains = Domains::find(place.path(), &allowed.parse().unwrap(), wanted).map_err(|e| {
            assert_eq!(e.exit_code(), 125);
            e.to_string()
        })?;
        Ok((domains.level, domains.cpus.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn the_innermost_level_with_a_choice_is_taken() {
        let smt =
            machine(&[["0-1", "0-1", "0-3"], ["0-1", "0-1", "0-3"], ["2-3", "2-3", "0-3"], ["2-3", "2-3", "0-3"]]);
        let two = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        assert_eq!(found(&smt, "0-3", None), Ok((SharedLevel::Smt, two("0-1", "2-3"))));
        assert_eq!(found(&smt, "0-2", None), Ok((SharedLevel::Smt, two("0-1", "2"))));
        assert_eq!(found(&smt, "0-3", Some(SharedLevel::L3)), Ok((SharedLevel::L3, vec!["0-3".to_owned()])));
        assert_eq!(
            found(&smt, "0,2", None),
            Ok((SharedLevel::L3, vec!["0,2".to_owned()])),
            "one domain is better than none"
        );
    }

    #[test]
    fn one_cpu_and_cpus_that_share_nothing_are_refused() {
        let plain = machine(&[["0", "0", "0-1"], ["1", "1", "0-1"]]);
        assert!(found(&plain, "1", None).unwrap_err().contains("may use CPU 1 alone"));
        let refused = found(&plain, "0-1", Some(SharedLevel::Smt)).unwrap_err();
        assert!(refused.contains("share a domain of level smt") && refused.contains("--domain"), "{refused}");
        let alone = machine(&[["0", "0", "0"], ["1", "1", "1"]]);
        fs::remove_dir_all(alone.path().join("node")).unwrap();
        assert!(found(&alone, "0-1", None).unwrap_err().contains("share no domain"));
    }

    #[test]
    fn tasks_are_shared_out_by_cpus() {
        assert_eq!(sizes(8, &[2, 2]), [4, 4]);
        assert_eq!(sizes(5, &[2, 2]), [3, 2]);
        assert_eq!(sizes(6, &[4, 2]), [4, 2]);
        assert_eq!(sizes(3, &[]), Vec::<usize>::new());
    }
}
