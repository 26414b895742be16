//! The programs: an origin, an accelerator before it, and the load's clients, on this machine.

use super::plan::{Plan, Subject};
use crate::PaperError;
use nearmiss_record::run::Scratch;
use nearmiss_workload::{Running, Stdio, Workload};
use serde_json::Value;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Programs of nearmiss that the paper runs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `nearmiss` itself, which watches the calls of `poll`.
    pub nearmiss: PathBuf,
    /// `nearmiss-accelerator`.
    pub accelerator: PathBuf,
    /// `nearmiss-webload`.
    pub webload: PathBuf,
}

impl Programs {
    /// Finds the programs beside a program. Errors: one is not there.
    pub fn beside(nearmiss: &Path) -> Result<Self, PaperError> {
        let beside = |name: &str| {
            let path = nearmiss.with_file_name(name);
            if path.is_file() { Ok(path) } else { Err(PaperError::NoProgram { path, package: name.to_owned() }) }
        };
        Ok(Programs {
            nearmiss: nearmiss.to_owned(),
            accelerator: beside("nearmiss-accelerator")?,
            webload: beside("nearmiss-webload")?,
        })
    }
}

/// How long a program may take until it answers, and to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections open, and the load settles, ahead of what is charged.
const SETTLES: Duration = Duration::from_secs(2);
const TICKS_A_SECOND: f64 = 100.0;

/// An accelerator with its origin and a full cache.
pub struct Bench<'a> {
    programs: &'a Programs,
    plan: Plan,
    subject: Subject,
    place: Scratch,
    address: String,
    accelerator: Running,
    // Killed when it is dropped.
    _origin: Running,
    next_request: u64,
}

/// One subject at one rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The rate was held, and every answer was right.
    pub held: bool,
    /// Response times, mean: all requests, hits, misses.
    pub mean_ms: [f64; 3],
    /// The 99th percentile of all requests.
    pub p99_ms: f64,
    /// Hits among the plain requests.
    pub hit_percent: f64,
    /// CPU time of the accelerator in percent of a CPU: all, and in the kernel.
    pub cpu_percent: [f64; 2],
    /// Share of the kernel's CPU time that is in the calls that wait for events; none: they could not be watched.
    pub waits_percent: Option<f64>,
}

impl<'a> Bench<'a> {
    /// Starts the programs and fills the cache.
    pub fn start(programs: &'a Programs, plan: Plan, subject: Subject) -> Result<Self, PaperError> {
        let place = Scratch::new(&std::env::temp_dir(), "nearmiss-paper-").map_err(PaperError::Place)?;
        let origin_output = place.path().join("origin");
        let origin = launch(&[programs.webload.to_string_lossy().as_ref(), "origin"], &origin_output)?;
        let origin_address = first_word_after(&origin_output, "listening ")?;
        let address = free_address()?;
        let config = place.path().join("accelerator.toml");
        fs::write(&config, configuration(&address, &origin_address, plan, subject)).map_err(PaperError::Place)?;
        let words = [&programs.accelerator.to_string_lossy(), "--config", &config.to_string_lossy()];
        let accelerator = launch(&words.map(AsRef::as_ref), &place.path().join("accelerator"))?;
        wait_until_answering(&address).ok_or_else(|| {
            let stderr = fs::read_to_string(place.path().join("accelerator.errors")).unwrap_or_default();
            PaperError::NoFigures(format!("the accelerator does not answer at {address}: {}", stderr.trim()))
        })?;
        let mut bench =
            Bench { programs, plan, subject, place, address, accelerator, _origin: origin, next_request: 0 };
        let fill_rate = plan.fill_rate.to_string();
        let filled = bench.load(&["--phases", "fill", "--rate", &fill_rate, "--fill-rate", &fill_rate])?;
        bench.next_request = bench.finished_load(filled)?["next_request"].as_u64().unwrap_or(0);
        Ok(bench)
    }

    /// Measures one rate.
    pub fn at(&mut self, rate: u32) -> Result<Cell, PaperError> {
        let (rate, next) = (rate.to_string(), self.next_request.to_string());
        // Charged behind the settling; the load goes on until the end of what is charged.
        let lasts = format!("{}s", u64::from(self.plan.seconds) + SETTLES.as_secs() + 1);
        let load = self.load(&["--phases", "top2", "--rate", &rate, "--for", &lasts, "--from", &next])?;
        std::thread::sleep(SETTLES);
        let watching = self.watch();
        let (before, begun) = (self.ticks(), Instant::now());
        std::thread::sleep(Duration::from_secs(self.plan.seconds.into()));
        let (after, seconds) = (self.ticks(), begun.elapsed().as_secs_f64());
        let waits_ns_a_second = watching.and_then(|watching| self.watched(watching));
        let report = self.finished_load(load)?;
        self.next_request = report["next_request"].as_u64().unwrap_or(0);
        let percent = |which: usize| (after[which] - before[which]) / TICKS_A_SECOND / seconds * 100.0;
        let (user, kernel) = (percent(0), percent(1));
        Ok(Cell {
            cpu_percent: [user + kernel, kernel],
            waits_percent: waits_ns_a_second.map(|ns| (ns / 1e7 / kernel.max(0.01) * 100.0).min(100.0)),
            ..load_cell(&report["phases"][0])
        })
    }

    fn load(&self, words: &[&str]) -> Result<Running, PaperError> {
        let sockets = self.plan.sockets.to_string();
        let mut line = vec![self.programs.webload.to_string_lossy().into_owned()];
        let kept = ["web", "--json", "--proxy", &self.address, "--working-set", self.plan.working_set, "--connections"];
        line.extend(kept.into_iter().chain([sockets.as_str()]).chain(words.iter().copied()).map(str::to_owned));
        if !self.subject.keep_alive {
            line.push("--connection-a-request".to_owned());
        }
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        launch(&line, &self.place.path().join("load"))
    }

    /// Returns the report of a load when it ended. A missed rate is a figure, not an error.
    fn finished_load(&self, load: Running) -> Result<Value, PaperError> {
        let finished = load.wait()?;
        let text = fs::read_to_string(self.place.path().join("load")).map_err(PaperError::Place)?;
        serde_json::from_str(&text).map_err(|_| PaperError::NoFigures(format!("{:?}: {text}", finished.status)))
    }

    /// User and system time.
    fn ticks(&self) -> [f64; 2] {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.accelerator.pid())).unwrap_or_default();
        // Behind the name, which may have spaces.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        [11, 12].map(|field: usize| fields.get(field).and_then(|text| text.parse().ok()).unwrap_or(0.0))
    }

    fn watch(&self) -> Option<Running> {
        let (pid, seconds) = (self.accelerator.pid().to_string(), format!("{}s", self.plan.seconds));
        let runs = self.place.path().join("runs");
        let nearmiss = self.programs.nearmiss.to_string_lossy();
        let (record, runs) = (self.watched_file(), runs.to_string_lossy());
        let record = record.to_string_lossy();
        let words = [nearmiss.as_ref(), "observe", "--polls", "--json", &record, "--runs", &runs, "-p", &pid];
        let words: Vec<&str> = words.into_iter().chain(["--for", seconds.as_str()]).collect();
        launch(&words, &self.place.path().join("watcher")).ok()
    }

    fn watched_file(&self) -> PathBuf {
        self.place.path().join("watched.json")
    }

    /// CPU time in calls that wait for events, a second.
    fn watched(&self, watching: Running) -> Option<f64> {
        let finished = watching.wait_for(PATIENCE).ok()?.ok()?;
        let text = finished.status.success().then(|| fs::read_to_string(self.watched_file()))?.ok()?;
        let record: Value = serde_json::from_str(&text).ok()?;
        let in_calls: f64 = record["polls"].as_array()?.iter().filter_map(|poll| poll["on_cpu_ns"].as_f64()).sum();
        Some(in_calls / record["duration_ns"].as_f64()? * 1e9)
    }
}

/// Reads a phase of the load's report.
fn load_cell(phase: &Value) -> Cell {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    Cell {
        held: phase["rate_held"] == true && phase["errors"] == 0,
        mean_ms: ["latency", "hits", "misses"].map(|of| number(&phase[of]["mean_ms"])),
        p99_ms: number(&phase["latency"]["p99_ms"]),
        hit_percent: number(&phase["hit_ratio"]) * 100.0,
        ..Cell::default()
    }
}

fn configuration(address: &str, origin: &str, plan: Plan, subject: Subject) -> String {
    format!(
        "listen = [\"{address}\"]\nthreads = 1\nengine = \"{}\"\npace = \"{}\"\nbudget = \"5ms\"\n\
         [[origin]]\naddress = \"{origin}\"\n[cache]\nmemory = \"{}\"\n[limits]\nconnections = 12000\n\
         shorten_from = 11000\n",
        subject.engine,
        subject.pace.setting(),
        plan.memory
    )
}

fn launch(words: &[&str], output: &Path) -> Result<Running, PaperError> {
    let errors = output.with_extension("errors");
    let file = |path: &Path| File::create(path).map_err(PaperError::Place);
    let workload = Workload::new(words).stdin(Stdio::Null).stdout(file(output)?).stderr(file(&errors)?);
    Ok(workload.launch_suspended()?.resume()?)
}

fn first_word_after(file: &Path, mark: &str) -> Result<String, PaperError> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(word) = text.lines().find_map(|line| line.strip_prefix(mark)) {
            return Ok(word.to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(PaperError::NoFigures(format!("{}: no line `{mark}…`", file.display())))
}

/// An address without a listener now.
fn free_address() -> Result<String, PaperError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(PaperError::Place)?;
    Ok(listener.local_addr().map_err(PaperError::Place)?.to_string())
}

fn wait_until_answering(address: &str) -> Option<()> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if std::net::TcpStream::connect(address).is_ok() {
            return Some(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}
