//! The scheduler in the kernel (sched_ext), and its loader.
//!
//! The loader speaks to the kernel by its plain system calls: the libraries for it either cannot load tables of
//! functions or describe the kernel's table by a layout of their own, which kernels with another layout refuse. Here
//! the kernel's own types give the places of the few members that are used. The scheduler is attached by a link, which
//! the kernel takes away with this process however it ends.

mod calls;
mod compiled;
mod maps;
mod seats;
mod types;

pub use seats::Seats;

use super::domains::Domains;
use super::report::{Scheduler as Report, Together, Verified};
use crate::pair::kept::KeptPairs;
use compiled::{Meaning, Program, programs};
use maps::{Maps, SEATS};
use nearmiss_analysis::CannotEngage;
use nearmiss_pairing::table::USUAL_CONFIDENCE;
use nearmiss_pairing::{Affinity, Bitmaps};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{FUNC, Structure, Types};

/// Nothing where the compiler for it was missing.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pair.bpf.o"));
const TYPES: &str = "/sys/kernel/btf/vmlinux";
const STATE: &str = "/sys/kernel/sched_ext/state";
/// Name of the scheduler, in `scxtop` and elsewhere.
const NAME: &[u8] = b"nearmiss_pair";
/// `SCX_OPS_SWITCH_PARTIAL`: only tasks that request it are ours.
const PARTIAL: u64 = 1 << 3;
const POLICY_EXT: i32 = 7;
const MOST_WAIT_FOR_DETACHING: Duration = Duration::from_secs(5);

/// A scheduler that is attached. Dropping it detaches it.
#[derive(Debug)]
pub struct Attached {
    maps: Arc<Maps>,
    link: Option<OwnedFd>,
    bitmaps: Bitmaps,
    tasks: usize,
    report: Report,
}

fn refused(what: &'static str) -> impl Fn(io::Error) -> CannotEngage {
    move |error| CannotEngage::system(what, error)
}

impl Attached {
    /// Loads and attaches the scheduler, for the tasks of a table. Errors: what the kernel refuses.
    pub fn load(domains: &Domains, kept: &KeptPairs) -> Result<Self, CannotEngage> {
        let begun = Instant::now();
        let found = programs(OBJECT).filter(|programs| !programs.is_empty()).ok_or_else(|| {
            CannotEngage::Parameters(
                "this nearmiss was built without clang, and so without its scheduler; leave --with out".to_owned(),
            )
        })?;
        let bytes = std::fs::read(TYPES).map_err(refused("read the kernel's types"))?;
        let no_types = || CannotEngage::Parameters(format!("{TYPES} has no types that a scheduler needs"));
        let types = Types::parse(&bytes).ok_or_else(no_types)?;
        let table = types.structure("sched_ext_ops").ok_or_else(no_types)?;
        let value = types.structure("bpf_struct_ops_sched_ext_ops").ok_or_else(no_types)?;
        let task = types.structure("task_struct").ok_or_else(no_types)?;

        let maps = Maps::new().map_err(refused("make the scheduler's maps (be root)"))?;
        let bitmaps = fill(&maps, domains, kept).map_err(refused("fill the scheduler's maps"))?;
        let meaning = |name: &str| meaning(name, &maps, &types, &task);
        let loaded = found
            .into_iter()
            .map(|program| load_program(program, &table, meaning))
            .collect::<Result<Vec<_>, CannotEngage>>()?;
        let verified = loaded.iter().map(|(name, _, program)| verified(name, program)).collect::<io::Result<_>>();
        let link = attach(&table, &value, &loaded)?;
        let report = Report {
            load_ns: begun.elapsed().as_nanos() as u64,
            programs: verified.map_err(refused("read what the verifier counted"))?,
            ..Report::default()
        };
        Ok(Attached { maps: Arc::new(maps), link: Some(link), bitmaps, tasks: kept.tasks.len().min(SEATS), report })
    }

    /// Makes a process, and all that it starts from now on, tasks of the scheduler.
    pub fn take(&self, pid: i32) -> Result<(), CannotEngage> {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel reads the parameters alone.
        match unsafe { libc::sched_setscheduler(pid, POLICY_EXT, &parameters) } {
            0 => Ok(()),
            _ => Err(CannotEngage::system("give the command to the scheduler", io::Error::last_os_error())),
        }
    }

    /// Returns the maps, through which seats are set.
    pub fn maps(&self) -> Arc<Maps> {
        Arc::clone(&self.maps)
    }

    /// Detaches the scheduler, and waits until the kernel is done. Returns the report.
    pub fn end(mut self) -> Result<Report, CannotEngage> {
        let counts = self.maps.counts().map_err(refused("read what the scheduler counted"))?;
        let mut report = std::mem::take(&mut self.report);
        (report.dispatched, report.by_table) = (counts.dispatched, counts.by_table);
        let (mut high, mut low) = (0, 0);
        for (a, b) in (0..self.tasks).flat_map(|a| (a + 1..self.tasks).map(move |b| (a, b))) {
            let ns = self.maps.together(a, b).map_err(refused("read who ran together"))?;
            match self.bitmaps.affinity(a, b) {
                Affinity::High => high += ns,
                Affinity::Low => low += ns,
                Affinity::Unknown => {}
            }
            report.pair_ns += ns;
            report.together.extend((ns > 0).then_some(Together { tasks: [a, b], ns }));
        }
        let share = |ns: u64| (report.pair_ns > 0).then(|| ns as f64 / report.pair_ns as f64);
        (report.high_share, report.low_share) = (share(high), share(low));
        let begun = Instant::now();
        drop(self.link.take());
        let is_gone = || std::fs::read_to_string(STATE).is_ok_and(|state| state.trim() == "disabled");
        while !is_gone() && begun.elapsed() < MOST_WAIT_FOR_DETACHING {
            std::thread::sleep(Duration::from_millis(2));
        }
        report.detach_ns = begun.elapsed().as_nanos() as u64;
        Ok(report)
    }
}

fn fill(maps: &Maps, domains: &Domains, kept: &KeptPairs) -> io::Result<Bitmaps> {
    let bitmaps = Bitmaps::of(&kept.table(), USUAL_CONFIDENCE);
    for seat in 0..SEATS {
        maps.set_row(seat, bitmaps.high_of(seat), bitmaps.low_of(seat))?;
    }
    for domain in &domains.cpus {
        maps.set_neighbours(&domain.iter().collect::<Vec<_>>())?;
    }
    Ok(bitmaps)
}

fn meaning(name: &str, maps: &Maps, types: &Types<'_>, task: &Structure) -> Option<Meaning> {
    if let Some(map) = maps.descriptor(name) {
        return Some(Meaning::Map(map));
    }
    match name.strip_prefix("task_struct__") {
        Some(field) => Some(Meaning::Constant(task.member(field)?.1.into())),
        None => Some(Meaning::Function(types.id(FUNC, name)?)),
    }
}

/// A loaded program: its name, where in the kernel's table it goes, and its descriptor.
type Loaded = (String, u32, OwnedFd);

fn load_program(
    mut program: Program,
    table: &Structure,
    meaning: impl Fn(&str) -> Option<Meaning>,
) -> Result<Loaded, CannotEngage> {
    let missing =
        |what: &str| CannotEngage::Parameters(format!("this kernel's sched_ext has no `{what}`: use affinity"));
    let (place, offset) = table.member(&program.name).ok_or_else(|| missing(&program.name))?;
    program.fill(meaning).map_err(|name| missing(&name))?;
    let Program { name, sleeps, text, .. } = program;
    match calls::load(&name, &text, table.id, place as u32, sleeps) {
        Ok(loaded) => Ok((name, offset, loaded)),
        Err((error, log)) if log.is_empty() => Err(CannotEngage::system("load the scheduler (be root)", error)),
        Err((error, log)) => {
            Err(CannotEngage::Parameters(format!("the kernel refuses the scheduler's {name}: {error}: {log}")))
        }
    }
}

fn verified(name: &str, program: &OwnedFd) -> io::Result<Verified> {
    let (verified, instructions) = calls::verified(program.as_raw_fd())?;
    Ok(Verified { name: name.to_owned(), verified, instructions })
}

/// The kernel's table with the members in use, all others zero.
fn attach(table: &Structure, value: &Structure, programs: &[Loaded]) -> Result<OwnedFd, CannotEngage> {
    let missing = || CannotEngage::Parameters("this kernel's sched_ext has another table of functions".to_owned());
    let (_, data) = value.member("data").ok_or_else(missing)?;
    let mut bytes = vec![0u8; value.bytes as usize];
    let mut put = |offset: u32, what: &[u8]| {
        let at = (data + offset) as usize;
        let place = bytes.get_mut(at..at + what.len()).ok_or_else(missing)?;
        place.copy_from_slice(what);
        Ok::<(), CannotEngage>(())
    };
    for (_, offset, program) in programs {
        put(*offset, &(program.as_raw_fd() as u64).to_ne_bytes())?;
    }
    put(table.member("name").ok_or_else(missing)?.1, NAME)?;
    put(table.member("flags").ok_or_else(missing)?.1, &PARTIAL.to_ne_bytes())?;
    let functions = calls::functions("nearmiss_pair", value.id, value.bytes).map_err(refused("make the scheduler"))?;
    calls::update(&functions, 0, &bytes).map_err(refused("fill the scheduler's table of functions"))?;
    calls::link(&functions).map_err(refused("attach the scheduler"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_object_has_its_programs_and_names_that_are_known() {
        let Some(found) = programs(OBJECT) else {
            eprintln!("skipped: built without clang");
            return;
        };
        let mut names: Vec<&str> = found.iter().map(|program| program.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["dispatch", "enqueue", "init", "running", "select_cpu", "stopping"]);
        assert!(found.iter().all(|program| program.sleeps == (program.name == "init")));
        let known = ["seats", "table", "state", "neighbours", "cpus", "together"];
        let of_kernel = |name: &str| name.starts_with("scx_bpf_") || name.starts_with("task_struct__");
        let used = found.iter().flat_map(|program| &program.names);
        assert!(used.into_iter().all(|(_, name)| of_kernel(name) || known.contains(&name.as_str())));
    }
}
