//! Table (a): pattern 9 on this machine, plain and with files that keep out of the page cache.

use crate::pacing::plan::Scale;
use crate::record::{Row, Table, Theirs, Unit};
use crate::{PaperError, PaperOptions};
use nearmiss_record::run::Scratch;
use nearmiss_workload::{Finished, Stdio, Workload};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Streams of pattern 9.
const STREAMS: usize = 4;
/// Arguments of the remedy, after `nearmiss`.
const REMEDY: [&str; 3] = ["apply", "bypass", "--files"];
/// Why the remedy's figures are not the paper's.
const NOT_THE_PATCH: &str = "`bypass --files` is not the paper's patch: it keeps data out of the page cache, and the kernel \
     still copies it through the CPU's caches; the patch keeps the page cache, and copies around the CPU's caches";

/// How much is written how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Size of one stream.
    pub stream_mib: u64,
    /// Rounds: each side once, in turn.
    pub rounds: usize,
}

impl Plan {
    /// Returns the plan of a scale.
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Trial => Plan { stream_mib: 4, rounds: 1 },
            Scale::Small => Plan { stream_mib: 128, rounds: 3 },
            Scale::Paper => Plan { stream_mib: 2048, rounds: 3 },
        }
    }

    fn bytes(self) -> u64 {
        (STREAMS as u64 * self.stream_mib) << 20
    }
}

/// One run of the pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Written {
    /// CPU time of the streams, user and kernel.
    pub cpu_ms: f64,
    /// From start to end.
    pub wall_ms: f64,
    /// Share of the files in the page cache behind it; none: `fincore` is missing.
    pub cached_percent: Option<f64>,
    /// Misses of the last level; none: they cannot be counted here.
    pub misses: Option<f64>,
}

/// Returns how many parts [`table`] reports.
pub fn parts(scale: Scale) -> usize {
    2 * Plan::of(scale).rounds
}

/// Measures the pattern on this machine, plain and with the remedy.
pub fn table(options: &PaperOptions<'_>, done: &dyn Fn()) -> Result<Table, PaperError> {
    let plan = Plan::of(options.scale);
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    if is_there("fio") {
        let sides = Sides { plan, remedied: has_remedy(options.nearmiss), counter: counter() };
        let [plain, remedied] = sides.measure(options.nearmiss, done)?;
        notes = sides.notes(&plain);
        rows = rows_of("plain", &plain);
        rows.extend(rows_of("apply bypass --files", &remedied));
    } else {
        notes.push("nothing is measured: fio is not here (apt-get install fio)".to_owned());
    }
    Ok(Table {
        name: "a".to_owned(),
        title: format!("pattern 9 here: {STREAMS} streams of {} MiB in records of 4 KiB", plan.stream_mib),
        source: "tables 4.2-3 and 4.2-4 are of another remedy".to_owned(),
        known: Some("measured"),
        rows,
        grid: None,
        shapes: Vec::new(),
        notes,
    })
}

/// Measurements, and the sides to measure.
struct Sides {
    plan: Plan,
    remedied: bool,
    /// Misses are counted, or why not.
    counter: Result<(), &'static str>,
}

impl Sides {
    /// Plain and remedied runs, in turn.
    fn measure(&self, nearmiss: &Path, done: &dyn Fn()) -> Result<[Vec<Written>; 2], PaperError> {
        let mut words = vec![nearmiss.to_string_lossy().into_owned()];
        words.extend(REMEDY.into_iter().chain(["--"]).map(str::to_owned));
        let (mut plain, mut remedied) = (Vec::new(), Vec::new());
        for _ in 0..self.plan.rounds {
            plain.push(self.written(&[])?);
            done();
            if self.remedied {
                remedied.push(self.written(&words)?);
            }
            done();
        }
        Ok([plain, remedied])
    }

    fn notes(&self, plain: &[Written]) -> Vec<String> {
        let missing = (!self.remedied).then(|| "plain alone: this nearmiss has no remedy `bypass --files`".to_owned());
        let uncounted = self.counter.err().map(|why| format!("misses are not counted: {why}"));
        let unseen = plain.iter().all(|written| written.cached_percent.is_none());
        let cached = unseen.then(|| "the page cache is not looked at: fincore is not here (util-linux)".to_owned());
        [missing, uncounted, cached, Some(NOT_THE_PATCH.to_owned())].into_iter().flatten().collect()
    }

    /// Runs the pattern once, behind these words, in files that are removed afterwards.
    fn written(&self, behind: &[String]) -> Result<Written, PaperError> {
        let here = std::env::current_dir().map_err(PaperError::Place)?;
        let place = Scratch::new(&here, ".nearmiss-paper-").map_err(PaperError::Place)?;
        let directories: Vec<PathBuf> = (1..=STREAMS).map(|n| place.path().join(n.to_string())).collect();
        directories.iter().try_for_each(fs::create_dir).map_err(PaperError::Place)?;
        let counted = place.path().join("counted");
        let counting = self.counter.is_ok().then(|| counting(&counted));
        let words: Vec<String> = counting
            .into_iter()
            .flatten()
            .chain(behind.iter().cloned())
            .chain(streams(self.plan, &directories))
            .collect();
        let finished = finished(&words, place.path())?;
        Ok(Written {
            cpu_ms: (finished.user_ns + finished.system_ns) as f64 / 1e6,
            wall_ms: finished.wall_ns as f64 / 1e6,
            cached_percent: cached(&directories).map(|bytes| bytes as f64 * 100.0 / self.plan.bytes() as f64),
            misses: fs::read_to_string(&counted).ok().and_then(|text| count(&text)),
        })
    }
}

fn rows_of(of: &str, written: &[Written]) -> Vec<Row> {
    let row = |what: &str, unit, value: &dyn Fn(&Written) -> Option<f64>| {
        let mut values: Vec<f64> = written.iter().filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        let median = values.get(values.len() / 2)?;
        Some(Row::new(of, what, unit, Theirs::None, *median))
    };
    let rows = [
        row("CPU time", Unit::Millis, &|w| Some(w.cpu_ms)),
        row("wall time", Unit::Millis, &|w| Some(w.wall_ms)),
        row("of the files, left in the page cache", Unit::Percent, &|w| w.cached_percent),
        row("misses of the last level", Unit::Count, &|w| w.misses),
    ];
    rows.into_iter().flatten().collect()
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Returns whether this nearmiss has the remedy, according to its help.
fn has_remedy(nearmiss: &Path) -> bool {
    let help = Command::new(nearmiss).args(["apply", "bypass", "--help"]).output();
    help.is_ok_and(|output| output.status.success() && String::from_utf8_lossy(&output.stdout).contains("--files"))
}

/// Checks whether `perf stat` counts misses here, and why not.
fn counter() -> Result<(), &'static str> {
    let units = ["cpu", "cpu_core", "armv8_pmuv3_0"].map(|unit| format!("/sys/bus/event_source/devices/{unit}"));
    if !units.iter().any(|unit| Path::new(unit).exists()) {
        return Err("this machine has no performance-monitoring unit");
    }
    if is_there("perf") { Ok(()) } else { Err("perf is not here") }
}

/// Returns the words before a command that make `perf stat` write its misses into a file.
fn counting(counted: &Path) -> Vec<String> {
    let kept = ["perf", "stat", "-x", ",", "-e", "cache-misses", "-o"].map(str::to_owned);
    kept.into_iter().chain([counted.to_string_lossy().into_owned(), "--".to_owned()]).collect()
}

/// Runs a command and sends its output to files in a place.
fn finished(words: &[String], place: &Path) -> Result<Finished, PaperError> {
    let errors = place.join("errors");
    let file = |path: &Path| File::create(path).map_err(PaperError::Place);
    let workload = Workload::new(words).stdin(Stdio::Null).stdout(file(&place.join("output"))?).stderr(file(&errors)?);
    let finished = workload.launch_suspended()?.resume()?.wait()?;
    if finished.status.success() {
        return Ok(finished);
    }
    let stderr = fs::read_to_string(&errors).unwrap_or_default();
    let command = words.first().map_or("", String::as_str);
    Err(PaperError::NoFigures(format!("{command}: {:?}: {}", finished.status, stderr.trim())))
}

/// The lab's pattern 9; here all streams are on one file system.
fn streams(plan: Plan, directories: &[PathBuf]) -> Vec<String> {
    let names: Vec<_> = directories.iter().map(|d| d.to_string_lossy().into_owned()).collect();
    let kept = "fio --rw=write --fallocate=none --bs=4k --end_fsync=1 --output-format=json --group_reporting \
                --gtod_reduce=1 --clocksource=clock_gettime --name=stream";
    let sized = [
        format!("--size={}M", plan.stream_mib),
        format!("--numjobs={STREAMS}"),
        format!("--directory={}", names.join(":")),
    ];
    kept.split_whitespace().map(str::to_owned).chain(sized).collect()
}

/// Bytes of all files in directories that are in the page cache.
fn cached(directories: &[PathBuf]) -> Option<u64> {
    let files = directories.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let files = files.flatten().flatten().map(|entry| entry.path());
    let output =
        Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).args(files).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    text.split_whitespace().map(|number| number.parse::<u64>().ok()).sum()
}

/// The first count of `perf stat -x ,`.
fn count(text: &str) -> Option<f64> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| line.split(',').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_and_what_was_not_counted_is_none() {
        assert_eq!(count("# started on Tue\n\n123456,,cache-misses,1000,100.00,,\n"), Some(123_456.0));
        assert_eq!(count("<not supported>,,cache-misses,0,100.00,,\n"), None);
    }

    #[test]
    fn rows_are_medians_of_what_was_measured() {
        let written = |cpu_ms| Written { cpu_ms, wall_ms: 2.0 * cpu_ms, ..Written::default() };
        let rows = rows_of("plain", &[written(30.0), written(10.0), written(20.0)]);
        assert_eq!(rows.iter().map(|row| row.ours).collect::<Vec<_>>(), [20.0, 40.0]);
    }
}
