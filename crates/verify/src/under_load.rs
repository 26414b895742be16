//! One run of a server: under its load, and charged with its CPU time meanwhile.

use crate::loads::{ACHIEVED, OFFERED, Reading, WORK};
use crate::pairs::is_behind;
use crate::{Better, CPU, Error, Plan, Probe, Sample, Verdict, WALL};
use nearmiss_workload::{Load, Loaded, Serving, ServingError, Status, Suspended};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The server's CPU time by unit of work.
pub const CPU_PER_WORK: &str = "cpu_us_per_request";

/// Time that a server may take to end after the request.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// Time to end after a failed run, or while the user waits for our end.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// Interval of the checks whether a load has ended.
const LOOK: Duration = Duration::from_millis(100);

/// A server that takes less for a request, in seconds, and hardly runs at all, does not get the load's requests: one
/// system call takes as long. A server that gets many requests in one call takes less, and is busy.
const LEAST_A_REQUEST: f64 = 1e-6;
/// The share of the time that a server without requests is busy, at most.
const SLEEPS: f64 = 0.05;

/// Load of a server, and the figures to read from its output.
#[derive(Clone, Debug)]
pub struct UnderLoad {
    /// The load, and the check that the server answers.
    pub load: Load,
    /// Figures that the user specifies; those of a known load are read too.
    pub reading: Reading,
}

/// A run's figures, and what a probe counted during the load.
pub(crate) struct Measured {
    pub(crate) sample: Sample,
    /// The CPU time may lack children that nobody waited for.
    pub(crate) may_miss_children: bool,
}

/// Whether a load that ended with a status printed its figures all the same.
pub(crate) type HasPrinted<'a> = &'a dyn Fn(Status) -> bool;

/// Starts the server, runs the load and stops the server. `probe` counts while the load runs.
pub(crate) fn run(
    suspended: Suspended,
    load: &Load,
    has_printed: HasPrinted<'_>,
    probe: Option<&mut (dyn Probe + 'static)>,
    stop: &AtomicBool,
) -> Result<Measured, Failed> {
    let mut serving = Serving::start(suspended, load)?;
    let may_miss_children = serving.may_miss_children();
    let measured = measure(&mut serving, load, has_printed, probe, stop);
    let grace = if measured.is_ok() { STOPS_WITHIN } else { AFTER_FAILURE };
    serving.stop(grace).map_err(ServingError::from)?;
    Ok(Measured { sample: measured?, may_miss_children })
}

fn measure(
    serving: &mut Serving,
    load: &Load,
    has_printed: HasPrinted<'_>,
    probe: Option<&mut (dyn Probe + 'static)>,
    stop: &AtomicBool,
) -> Result<Sample, Failed> {
    serving.wait_until_ready(load, stop)?;
    let Some(probe) = probe else { return Ok(figures(&whole(serving.under(load, stop, || LOOK)?, has_printed)?)) };
    probe.begin()?;
    let mut sample = figures(&whole(serving.under(load, stop, || LOOK)?, has_printed)?);
    sample.extend(probe.read()?);
    Ok(sample)
}

fn whole(loaded: Loaded, has_printed: HasPrinted<'_>) -> Result<Loaded, ServingError> {
    match loaded.whole() {
        Err(ServingError::LoadFailed(status)) if has_printed(status) => Ok(loaded),
        whole => whole,
    }
}

/// Why a run failed.
pub(crate) enum Failed {
    /// The server or its load.
    Serving(ServingError),
    /// The probe.
    Probe(Error),
}

impl From<ServingError> for Failed {
    fn from(error: ServingError) -> Self {
        Failed::Serving(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Probe(error)
    }
}

/// The wall time is the load's.
fn figures(loaded: &Loaded) -> Sample {
    let seconds = |ns: u64| ns as f64 * 1e-9;
    let figures = [(WALL, seconds(loaded.load.wall_ns)), (CPU, seconds(loaded.server_cpu_ns))];
    figures.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Adds what the load printed.
pub(crate) fn add_printed(sample: &mut Sample, reading: &Reading, output: &str) -> Result<(), String> {
    sample.extend(reading.figures(output)?);
    let of = |name: &str| sample.get(name).copied();
    let (cpu, seconds) = (of(CPU).unwrap_or(0.0), of(WALL).unwrap_or(0.0));
    let requests = of(WORK).or_else(|| of(ACHIEVED).map(|rate| rate * seconds));
    let slept = requests.is_some_and(|requests| cpu < requests * LEAST_A_REQUEST && cpu < seconds * SLEEPS);
    if cpu == 0.0 || slept {
        let (cpu, requests) =
            (cpu * 1e3, requests.map_or_else(String::new, |n| format!(" and counted {n:.0} requests")));
        return Err(format!(
            "the server used {cpu:.3} ms of CPU time while the load ran{requests}: does the load reach this server?"
        ));
    }
    if let Some(work) = of(WORK) {
        sample.insert(CPU_PER_WORK.to_owned(), cpu * 1e6 / work);
    }
    Ok(())
}

/// Returns the plan once the first run shows what the load prints: the server's CPU time decides.
pub(crate) fn plan(plan: &Plan, reading: &Reading) -> Plan {
    Plan {
        metric: if reading.work.is_some() { CPU_PER_WORK } else { CPU }.to_owned(),
        second: None,
        better: Better::Lower,
        beside: reading.judged(),
        work_is_known: reading.has_work(),
        ..plan.clone()
    }
}

/// Returns notes on the load for the reader.
pub(crate) fn notes(reading: &Reading, verdict: &Verdict, may_miss_children: bool) -> Vec<String> {
    let mut notes = Vec::from_iter(of_pairs_behind(verdict));
    if reading.has_work() && verdict.with.first().is_some_and(|sample| !sample.contains_key(OFFERED)) {
        notes.push(
            "The load prints no offered rate. A load that waits for each answer before its next request slows down with \
             the server, so a remedy that adds latency also lowers the rate: compare at a fixed rate."
                .to_owned(),
        );
    }
    if reading.work.is_none() && reading.has_work() {
        notes.push(
            "The load prints no number of requests, so the CPU time is that of its whole time; --work REGEX reads it."
                .to_owned(),
        );
    }
    if may_miss_children {
        notes.push(
            "The kernel refuses the clock of all tasks (kernel.perf_event_paranoid above 2), so the CPU time lacks \
             children of the server that nobody waited for."
                .to_owned(),
        );
    }
    notes
}

/// Returns a note on the pairs in which the load sent late.
fn of_pairs_behind(verdict: &Verdict) -> Option<String> {
    let pairs = verdict.without.iter().zip(&verdict.with);
    let behind = pairs.filter(|(without, with)| is_behind(without, with)).count();
    (behind > 0).then(|| {
        format!(
            "In {behind} of {} pairs the load sent late by its own fault (no idle CPU was left for it): what it printed \
             there of the server's times is left out.",
            verdict.pairs
        )
    })
}

/// The last lines of a server's output, as one line.
pub(crate) fn last_words(outputs: [String; 2]) -> String {
    const LINES: usize = 3;
    let spoken = outputs.iter().find(|text| !text.trim().is_empty());
    let lines: Vec<&str> =
        spoken.map(|text| text.lines().map(str::trim).filter(|l| !l.is_empty()).collect()).unwrap_or_default();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join(" / ");
    if last.is_empty() { "it printed nothing".to_owned() } else { format!("its last words: {last:?}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_does_not_reach_the_server_is_reported() {
        let of = |cpu: f64| {
            let mut sample = Sample::from([(CPU.to_owned(), cpu), (WALL.to_owned(), 2e-5)]);
            let output = "requests: 4 total, 4 started, 4 done, 4 succeeded, 0 failed, 0 errored, 0 timeout";
            let reading = Reading::of(&Reading::default(), output).unwrap();
            add_printed(&mut sample, &reading, output).map(|()| sample[CPU_PER_WORK])
        };
        assert_eq!(of(1.0), Ok(250_000.0));
        // Four requests in 20 us.
        for cpu in [0.0, 0.9e-6] {
            assert!(
                of(cpu).unwrap_err().ends_with("and counted 4 requests: does the load reach this server?"),
                "{cpu}"
            );
        }
        assert!((of(4.1e-6).unwrap() - 1.025).abs() < 1e-9);
        assert!(of(1.1e-6).is_ok(), "many requests in one call");
    }

    #[test]
    fn last_words_are_the_errors_or_else_the_output() {
        let words = |err: &str, out: &str| last_words([err.to_owned(), out.to_owned()]);
        assert_eq!(words("a\nb\n\nc\nd\n", "x"), "its last words: \"b / c / d\"");
        assert_eq!(
            (words("\n", "x\n").as_str(), words("", "").as_str()),
            ("its last words: \"x\"", "it printed nothing")
        );
    }
}
