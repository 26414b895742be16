//! Tables (c) and (d): nginx, and a server of mixed work, recorded in guests of two nodes and replayed with other homes.

use super::chassis::MACHINE;
use super::homes::{Homes, replay};
use super::placed::{Recording, median};
use super::tables::Class;
use crate::pacing::plan::Scale;
use crate::parallel::simulate_all;
use crate::record::{Grid, GridRow, Row, Shape, Table, Theirs, Unit};
use crate::text::figure;
use crate::{PaperError, PaperOptions};
use nearmiss_record::model::ModelRecord;
use nearmiss_record::run::{self, RunDir, Scratch};
use nearmiss_workload::{Stdio, Workload};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A program of ours, beside `nearmiss`.
const MIXED: &str = "mixed-server";
/// Bytes of the page that nginx serves: WebBench's mean is of this size (assumed).
const PAGE_BYTES: usize = 6144;
/// Functions of the kernel that are listed.
const LISTED: usize = 10;
/// Blind homes must cost so many times what the kernel's do.
const WANTED: f64 = 1.5;

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Recordings a side.
    pub recordings: usize,
    /// Requests of a client of nginx, and transactions of one of the mixed server.
    pub each: [u64; 2],
    /// Page placements that each is replayed on.
    pub placements: u64,
}

impl Plan {
    /// Returns the plan of a scale.
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Trial => Plan { recordings: 1, each: [1, 1], placements: 1 },
            Scale::Small => Plan { recordings: 3, each: [8, 4], placements: 5 },
            Scale::Paper => Plan { recordings: 3, each: [16, 8], placements: 5 },
        }
    }
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// nginx with 64 workers, its page in the guest's memory, and 64 clients with a connection each.
    Nginx,
    /// Sixteen processes that compute, use files and the network.
    Mixed,
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Server::Nginx => "nginx",
            Server::Mixed => MIXED,
        }
    }

    fn clients(self) -> u64 {
        match self {
            Server::Nginx => 64,
            Server::Mixed => 16,
        }
    }

    /// Requests or transactions of a client.
    fn each(self, plan: Plan) -> u64 {
        plan.each[self as usize]
    }

    fn port(self) -> u16 {
        match self {
            Server::Nginx => 8081,
            Server::Mixed => 8082,
        }
    }

    /// Returns the command that starts it in the guest.
    fn command(self, mixed: &Path, place: &Path) -> Vec<String> {
        let mixed = mixed.to_string_lossy().into_owned();
        match self {
            Server::Mixed => vec![mixed, "--port".to_owned(), self.port().to_string()],
            // The workers are at rest before anything listens on the other port, so none of their start is recorded.
            Server::Nginx => {
                let (place, ready) = (place.display(), self.ready());
                let script = format!(
                    "mkdir -p /dev/shm/www && cp '{place}/index.html' /dev/shm/www/ && PATH=$PATH:/usr/sbin && \
                     {{ nginx -c '{place}/nginx.conf' & sleep 2; exec '{mixed}' --port {ready} --processes 1; }}"
                );
                ["sh", "-c", &script].map(str::to_owned).to_vec()
            }
        }
    }

    /// Returns the port that is listened on when the server is ready.
    fn ready(self) -> u16 {
        match self {
            Server::Nginx => 8083,
            Server::Mixed => 8082,
        }
    }

    fn load(self, mixed: &Path, plan: Plan) -> String {
        let kind = if self == Server::Nginx { "--get" } else { "--ask" };
        let (mixed, port, clients, each) = (mixed.display(), self.port(), self.clients(), self.each(plan));
        format!("'{mixed}' {kind} --port {port} --processes {clients} --transactions {each}")
    }
}

/// nginx as the paper's Apache: a worker for each client, no log.
fn config(port: u16) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary.iter().map(|what| format!("  {what}_temp_path /dev/shm/{what};\n")).collect();
    format!(
        "daemon off; worker_processes 64; pid /dev/shm/nginx.pid; error_log /dev/null;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; server {{ listen 127.0.0.1:{port}; root /dev/shm/www; }}\n{temporary}}}\n"
    )
}

/// Returns how many parts a table reports.
pub fn parts(scale: Scale) -> usize {
    2 * Plan::of(scale).recordings
}

/// Records and replays one server, its processes free and bound.
pub fn table(options: &PaperOptions<'_>, server: Server, done: &(dyn Fn() + Sync)) -> Result<Table, PaperError> {
    let plan = Plan::of(options.scale);
    let mixed = beside(options.nearmiss);
    let missing = missing(server, &mixed);
    let mut sides: [Vec<Recording>; 2] = [Vec::new(), Vec::new()];
    if missing.is_none() {
        for _ in 0..plan.recordings {
            for (bound, side) in sides.iter_mut().enumerate() {
                side.push(recording(options.nearmiss, &mixed, server, plan, bound == 1)?);
                done();
            }
        }
    }
    let (name, title, source) = match server {
        Server::Nginx => ("c", "nginx with 64 workers, recorded", "figures 5 and 8; Linux 6.12, where M has long been"),
        Server::Mixed => ("d", "16 processes that compute, use files and the network, recorded", "figures 6 and 9"),
    };
    let is_recorded = missing.is_none();
    Ok(Table {
        name: name.to_owned(),
        title: title.to_owned(),
        source: source.to_owned(),
        known: None,
        rows: rows(&sides, server, plan),
        grid: is_recorded.then(|| grid(&sides, plan)),
        shapes: if is_recorded { shapes(&sides, server) } else { Vec::new() },
        notes: missing.map_or_else(|| notes(&sides, server, plan), |why| vec![format!("nothing is recorded: {why}")]),
    })
}

/// The program of ours: in a clone, `target/subjects` beside `target/release`.
fn beside(nearmiss: &Path) -> PathBuf {
    let target = nearmiss.parent().and_then(Path::parent).unwrap_or(Path::new("target"));
    target.join("subjects").join(MIXED)
}

fn missing(server: Server, mixed: &Path) -> Option<String> {
    if !mixed.is_file() {
        return Some(format!("{}: not there; build it in a clone of nearmiss: make subjects", mixed.display()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]).any(|d| d.join("nginx").is_file());
    (server == Server::Nginx && !is_there).then(|| "nginx is not here (apt-get install nginx-light)".to_owned())
}

/// Records once, in a directory that is removed afterwards, and replays.
fn recording(nearmiss: &Path, mixed: &Path, server: Server, plan: Plan, bound: bool) -> Result<Recording, PaperError> {
    let here = std::env::current_dir().map_err(PaperError::Place)?;
    let place = Scratch::new(&here, ".nearmiss-paper-").map_err(PaperError::Place)?;
    fs::write(place.path().join("index.html"), vec![b'x'; PAGE_BYTES]).map_err(PaperError::Place)?;
    fs::write(place.path().join("nginx.conf"), config(server.port())).map_err(PaperError::Place)?;
    let runs = place.path().join("runs");
    let path = nearmiss.to_string_lossy().into_owned();
    let load = server.load(mixed, plan);
    let options =
        format!("trace -q -m {MACHINE} --cpus 4 --clock instructions --no-curve --no-stacks --no-heap --client-cpus 2");
    let mut words: Vec<String> = [path.clone()].into_iter().chain(options.split(' ').map(str::to_owned)).collect();
    let ready = format!("127.0.0.1:{}", server.ready());
    words.extend(["--runs", &runs.to_string_lossy(), "--ready", &ready, "--load", &load, "--"].map(str::to_owned));
    if bound {
        words.push(path);
        words.extend(["apply", "local", "--bind", "round-robin", "--"].map(str::to_owned));
    }
    words.extend(server.command(mixed, place.path()));
    run_once(&words, place.path())?;
    let run = RunDir::newest(&runs)?;
    run.has_whole_trace()?;
    let model: ModelRecord = run.read_json(run::MODEL)?;
    let of_homes = simulate_all(&Homes::ALL, &|| (), |&homes| {
        replay(&run, &model.machine, homes, plan.placements, server.name())
    })?;
    let placed = (0..plan.placements as usize).map(|at| of_homes.iter().map(|served| served[at]).collect());
    Ok(Recording { placed: placed.collect(), functions: functions(&model) })
}

/// A server that is ended by a signal has no status of its own: the run's directory shows whether there is a run.
fn run_once(words: &[String], place: &Path) -> Result<(), PaperError> {
    let errors = place.join("errors");
    let file = |path: &Path| File::create(path).map_err(PaperError::Place);
    let workload = Workload::new(words).stdin(Stdio::Null).stdout(file(&place.join("output"))?).stderr(file(&errors)?);
    workload.launch_suspended()?.resume()?.wait()?;
    if place.join("runs").is_dir() {
        return Ok(());
    }
    let stderr = fs::read_to_string(&errors).unwrap_or_default();
    Err(PaperError::NoFigures(format!("{}: {}", words.join(" "), stderr.trim())))
}

/// The kernel's functions with the most cycles, as shares of the kernel's, in percent.
fn functions(model: &ModelRecord) -> Vec<(String, f64)> {
    let mut kernel: Vec<_> = model.functions.iter().filter(|row| row.kernel).collect();
    let all: u64 = kernel.iter().map(|row| row.tally.cycles).sum();
    kernel.sort_by_key(|row| std::cmp::Reverse(row.tally.cycles));
    let share = |cycles: u64| cycles as f64 * 100.0 / all.max(1) as f64;
    kernel.iter().take(LISTED).map(|row| (row.name.clone(), share(row.tally.cycles))).collect()
}

const SIDES: [&str; 2] = ["free", "bound"];

fn rows(sides: &[Vec<Recording>; 2], server: Server, plan: Plan) -> Vec<Row> {
    let requests = (server.clients() * server.each(plan)) as f64;
    let mut rows = Vec::new();
    for (side, recordings) in SIDES.into_iter().zip(sides) {
        let mut row = |what: &str, unit, value: &dyn Fn(&Recording) -> f64| {
            let value = median(recordings.iter().map(value).collect());
            rows.extend(value.map(|value| Row::new(side, what, unit, Theirs::None, value)));
        };
        row("one node: kilocycles a request", Unit::Count, &|r| r.of(Homes::OneNode, |s| s.total()) / requests / 1e3);
        row("one node: share of the OS", Unit::Percent, &|r| {
            r.of(Homes::OneNode, |s| s.cycles[1] * 100.0 / s.total().max(1.0))
        });
        let overhead = Unit::ChangePercent;
        row("two nodes, homes in turn (blind)", overhead, &|r| r.overhead(Homes::Blind));
        row("two nodes, the kernel's homes (aware)", overhead, &|r| r.overhead(Homes::Kernel));
        row("two nodes, first touch in the window", overhead, &|r| r.overhead(Homes::FirstTouch));
        row("node locality, the kernel's homes", Unit::Percent, &Recording::locality);
    }
    rows
}

/// Every recording: the spread.
fn grid(sides: &[Vec<Recording>; 2], plan: Plan) -> Grid {
    let mut rows = Vec::new();
    for (side, recordings) in SIDES.into_iter().zip(sides) {
        let mut row = |what: &str, value: &dyn Fn(&Recording) -> f64| {
            let cells = recordings.iter().map(value).collect();
            rows.push(GridRow { of: side.to_owned(), what: what.to_owned(), cells, from: None });
        };
        let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
        let most = |values: Vec<f64>| values.into_iter().fold(f64::NEG_INFINITY, f64::max);
        for (homes, name) in [(Homes::Blind, "blind"), (Homes::Kernel, "aware")] {
            row(&format!("overhead, {name}"), &|r| r.overhead(homes));
            row(&format!("  least of the placements, {name}"), &|r| least(r.overheads(homes)));
            row(&format!("  most of the placements, {name}"), &|r| most(r.overheads(homes)));
        }
        row("OS time, aware, against one node", &|r| r.overhead_of(1));
        row("user time, aware, against one node", &|r| r.overhead_of(0));
        let classes: [Class; 4] = [
            ("r, aware", |bus| bus.read_remote),
            ("l-n, aware", |bus| bus.read_local_none),
            ("l-s, aware", |bus| bus.read_local_shared),
            ("l-m, aware", |bus| bus.read_local_modified),
        ];
        for (name, class) in classes {
            row(name, &|r| r.class(class));
        }
    }
    Grid {
        columns: (1..=plan.recordings).map(|n| format!("recording {n}")).collect(),
        unit: Unit::Percent,
        mark: "medians of the page placements; overheads against one node; classes are of all bus reads of the server's tasks"
            .to_owned(),
        rows,
    }
}

fn shapes(sides: &[Vec<Recording>; 2], server: Server) -> Vec<Shape> {
    let list = |values: &[f64], unit| values.iter().map(|v| figure(*v, unit)).collect::<Vec<_>>().join(", ");
    let times: Vec<f64> = sides.iter().flatten().flat_map(Recording::blind_times).collect();
    let mut shapes = vec![Shape {
        claim: format!(
            "blind homes cost at least {WANTED} times what the kernel's cost, in every recording on every placement"
        ),
        holds: times.iter().all(|times| *times >= WANTED),
        ours: list(&times, Unit::Times),
    }];
    let cycles =
        |side: &[Recording]| side.iter().map(|r| r.of(Homes::Kernel, |s| s.total()) / 1e6).collect::<Vec<f64>>();
    let (free, bound) = (cycles(&sides[0]), cycles(&sides[1]));
    let ours = format!("free {} and bound {} million cycles", list(&free, Unit::Count), list(&bound, Unit::Count));
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    shapes.push(match server {
        Server::Nginx => Shape {
            claim: "binding changes no more than the recordings differ among themselves, or 5%".to_owned(),
            holds: least(&bound) <= most(&free) * 1.05 && most(&bound) >= least(&free) * 0.95,
            ours,
        },
        Server::Mixed => Shape {
            claim: "binding saves time: every bound recording takes less than every free one".to_owned(),
            holds: most(&bound) < least(&free),
            ours,
        },
    });
    shapes
}

fn notes(sides: &[Vec<Recording>; 2], server: Server, plan: Plan) -> Vec<String> {
    let first = sides[0].first().map(|r| r.functions.as_slice()).unwrap_or_default();
    let share_text = |(name, share): &(String, f64)| format!("{name} {share:.1}%");
    let listed = first.iter().map(share_text).collect::<Vec<_>>().join(", ");
    vec![
        format!(
            "{} recordings a side of {} requests each, replayed on {} page placements each; the load has two CPUs and a node of its own, and all figures are of \
             the tasks named {}",
            plan.recordings,
            server.clients() * server.each(plan),
            plan.placements,
            server.name()
        ),
        "one node, blind and first touch are replays of the same recordings; the recorded order shows little of lines that \
         pass between CPUs"
            .to_owned(),
        format!("the kernel's functions, server and load together, first recording: {listed}"),
    ]
}
