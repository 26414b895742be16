//! Ctrl-C and SIGTERM.
//!
//! One thread receives both for as long as the process runs. A signal ends nearmiss at once, whenever it comes, after
//! what was begun has been taken away; unless the signal is for somebody else just then: a command that runs, or an
//! observation that is to be ended and kept.

use crate::exit;
use anyhow::Context;
use nearmiss_record::run::{self, RunDir, RunError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A request to terminate ends a recording for a diagnosis after this time, however far its model is.
const TERMINATION: Duration = Duration::from_millis(2500);

/// How often, and how long, a signal on its way is looked for.
const AWAITED_LOOKS: usize = 50;
const LOOK: Duration = Duration::from_millis(5);

struct State {
    /// Signals that somebody else sees to before they end nearmiss.
    for_others: u32,
    /// Message printed at the first signal for others; empty: none.
    first: &'static str,
    /// A request to terminate that is for others ends nearmiss after [`TERMINATION`].
    is_limited: bool,
    /// The last signal that came.
    received: Option<i32>,
    /// Files and runs that are taken away.
    unfinished: Vec<Begun>,
}

/// File or run that a signal that ends nearmiss must not leave.
enum Begun {
    File(PathBuf),
    Run(RunDir),
}

impl Begun {
    fn path(&self) -> &Path {
        match self {
            Begun::File(path) => path,
            Begun::Run(run) => run.path(),
        }
    }

    fn take_away(&self) {
        match self {
            // A failed removal is no reason to go on.
            Begun::File(path) => drop(std::fs::remove_file(path)),
            Begun::Run(run) => run.discard(),
        }
    }
}

static STATE: Mutex<State> =
    Mutex::new(State { for_others: 0, first: "", is_limited: false, received: None, unfinished: Vec::new() });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to listen. Signals that this process ignores (`nohup`, a shell's background) stay ignored.
pub fn listen() -> anyhow::Result<()> {
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted).context("cannot listen for Ctrl-C")?;
    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(move || signals.forever().for_each(on_signal))
        .context("cannot listen for Ctrl-C")?;
    Ok(())
}

/// Bit `n - 1` is signal `n`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn on_signal(signal: i32) {
    let mut state = state();
    state.received = Some(signal);
    if state.for_others > 0 {
        state.for_others -= 1;
        let first = std::mem::take(&mut state.first);
        if !first.is_empty() {
            exit::print_message(first);
        }
        if signal == SIGTERM && std::mem::take(&mut state.is_limited) {
            std::thread::spawn(end_late);
        }
        return;
    }
    state.unfinished.iter().for_each(Begun::take_away);
    run::remove_unfinished();
    exit::print_message("interrupted");
    // The lock is held: nobody begins anything any more.
    std::process::exit(i32::from(exit::of_signal(signal)));
}

/// Ends nearmiss where it has not ended by itself. Runs stay as they are: their traces can be modelled later.
fn end_late() {
    std::thread::sleep(TERMINATION);
    let state = state();
    state.unfinished.iter().filter(|begun| matches!(begun, Begun::File(_))).for_each(Begun::take_away);
    run::remove_unfinished();
    exit::print_message("terminated before the recording was modelled; `nearmiss diagnose RUN` models what is there");
    // The lock is held: nobody begins anything any more.
    std::process::exit(i32::from(exit::of_signal(SIGTERM)));
}

/// The last signal that came.
pub fn received() -> Option<i32> {
    state().received
}

/// The last signal that came, or that is on its way: it may end a command before the thread that receives it runs.
pub fn awaited() -> Option<i32> {
    for _ in 0..AWAITED_LOOKS {
        if let Some(signal) = received() {
            return Some(signal);
        }
        std::thread::sleep(LOOK);
    }
    None
}

/// The last signal has been seen to: what fails from here on fails for reasons of its own.
pub fn forget() {
    state().received = None;
}

/// Until this is dropped, so many signals are for others; the next one ends nearmiss.
pub struct ForOthers(());

/// Leaves so many signals to others: see [`ForOthers`].
pub fn for_others(signals: u32) -> ForOthers {
    state().for_others = signals;
    ForOthers(())
}

/// From here on a request to terminate that is somebody else's ends nearmiss after [`TERMINATION`]: for a recording, whose
/// run stays. What runs on this machine has no such limit.
pub fn limit_termination() {
    state().is_limited = true;
}

/// Printed at the first signal that is somebody else's, from here on.
pub fn announce(first: &'static str) {
    state().first = first;
}

impl Drop for ForOthers {
    fn drop(&mut self) {
        let mut state = state();
        (state.for_others, state.first, state.is_limited) = (0, "", false);
    }
}

/// A file or a run that is taken away if a signal ends nearmiss before this is dropped.
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Begins to care for a file.
    pub fn file(path: &Path) -> Self {
        Self::begun(Begun::File(path.to_owned()), &mut state())
    }

    /// Begins a run and to care for it: no signal ends nearmiss between the two.
    pub fn run(parent: &Path, stem: &str) -> Result<(RunDir, Self), RunError> {
        let mut state = state();
        let run = RunDir::create(parent, stem)?;
        let unfinished = Self::begun(Begun::Run(run.clone()), &mut state);
        Ok((run, unfinished))
    }

    fn begun(begun: Begun, state: &mut State) -> Self {
        let path = begun.path().to_owned();
        state.unfinished.push(begun);
        Unfinished(path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        state().unfinished.retain(|begun| *begun.path() != self.0);
    }
}
