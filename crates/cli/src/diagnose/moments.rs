//! A command that runs here at full speed, while snapshots are taken of it at moments that are spread over its run.

use super::spread::Spread;
use super::standing::standing;
use crate::exit::{Interrupted, print_message};
use crate::{interrupt, observe, snapshot};
use nearmiss_record::observed::Profile;
use nearmiss_record::words::{counted, duration, fixed_percent, listed};
use nearmiss_snapshot::{Snapshot, SnapshotError};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// So many snapshots are too many: every other one is dropped.
const TOO_MANY: usize = 12;
/// Snapshots that are kept however large they are.
const LEAST_KEPT: usize = 6;
/// Bytes of snapshots above which every other one is dropped, down to those.
const MOST_BYTES: u64 = 1 << 30;
/// Time from the start to the first snapshot, and to the next one at first.
const FIRST: Duration = Duration::from_millis(500);
/// Snapshots of a command that may fail, one after the other.
const MOST_FAILURES: u32 = 3;
/// A command that ends makes its snapshot fail: its end is waited for so long.
const END: Duration = Duration::from_millis(300);

/// A command that ran here.
pub struct Ran {
    pub observed: observe::ObservedCommand,
    /// The moments that stand for it, in the order of time.
    pub moments: Vec<Taken>,
}

/// A snapshot of a command.
pub struct Taken {
    /// Time from the command's start.
    pub at: Duration,
    /// Share of the run that it stands for.
    pub share: f64,
    pub snapshot: Snapshot,
}

/// Runs a command here, observes it, and takes snapshots of it meanwhile, if this machine can.
pub fn run(runs: &Path, command: &[OsString]) -> anyhow::Result<Ran> {
    let able = Snapshot::is_possible();
    interrupt::announce("ending the command; its snapshots are diagnosed; again to drop them");
    let signals = interrupt::for_others(1);
    let (sender, started) = channel();
    let (observed, followed) = std::thread::scope(|scope| {
        let followed = able.is_ok().then(|| scope.spawn(|| follow(started)));
        let observed = observe::for_diagnosis(runs, command, followed.is_some().then_some(sender));
        (observed, followed.and_then(|followed| followed.join().ok()))
    });
    drop(signals);
    let observed = observed?;
    let followed = followed.unwrap_or_default();
    end_of(&observed, &followed)?;
    let Followed { spread, whole, failure } = followed;
    let moments = chosen(spread, whole, &observed.profile);
    report(&moments, whole, able.err().or(failure).map(|error| error.to_string()));
    Ok(Ran { observed, moments })
}

/// The snapshots that stand for the whole run.
fn chosen(spread: Spread<Snapshot>, whole: Duration, profile: &Profile) -> Vec<Taken> {
    let taken = spread.into_kept();
    let times: Vec<Duration> = taken.iter().map(|(at, _)| *at).collect();
    let shares: HashMap<usize, f64> = standing(&times, whole, profile).iter().map(|one| (one.at, one.share)).collect();
    let of = |(number, (at, snapshot))| shares.get(&number).map(|share| Taken { at, share: *share, snapshot });
    taken.into_iter().enumerate().filter_map(of).collect()
}

/// The first interrupt ends the command, and its snapshots are diagnosed. A request to terminate ends nearmiss too.
fn end_of(observed: &observe::ObservedCommand, followed: &Followed) -> anyhow::Result<()> {
    use signal_hook::consts::SIGINT;
    let received = interrupt::received();
    interrupt::forget();
    let ends = match received {
        Some(signal) => signal != SIGINT || followed.spread.kept().next().is_none(),
        None => observed.signal == Some(SIGINT),
    };
    if ends {
        return Err(Interrupted("the command was interrupted".to_owned()).into());
    }
    Ok(())
}

/// Snapshots of a command that has ended.
struct Followed {
    spread: Spread<Snapshot>,
    /// Time from the command's start to its end.
    whole: Duration,
    failure: Option<SnapshotError>,
}

impl Default for Followed {
    fn default() -> Self {
        Followed { spread: Spread::new(TOO_MANY, FIRST), whole: Duration::ZERO, failure: None }
    }
}

/// Takes snapshots until the command's end, when nobody sends any more.
fn follow(started: Receiver<i32>) -> Followed {
    let mut followed = Followed::default();
    let Ok(pid) = started.recv() else { return followed };
    let (began, mut failures) = (Instant::now(), 0);
    let runs_on = |time| started.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    while failures < MOST_FAILURES && runs_on(followed.spread.next().saturating_sub(began.elapsed())) {
        let taken = snapshot::of_running_command(pid);
        let at = began.elapsed();
        match taken {
            Ok(snapshot) => {
                failures = 0;
                put(&mut followed.spread, snapshot.map(|snapshot| (at, snapshot)));
            }
            // It has ended, though its observation has not.
            Err(SnapshotError::NoProcess(_)) => break,
            Err(_) if !runs_on(END) => break,
            Err(error) => {
                failures += 1;
                followed.failure = Some(error);
                followed.spread.put(None);
            }
        }
    }
    // The end is at hand, or is waited for without further snapshots.
    while runs_on(Duration::from_secs(1)) {}
    followed.whole = began.elapsed();
    followed
}

/// Keeps a snapshot, and memory for the command.
fn put(spread: &mut Spread<Snapshot>, taken: Option<(Duration, Snapshot)>) {
    spread.put(taken);
    let bytes: u64 = spread.kept().map(|(_, snapshot)| snapshot.bytes()).sum();
    if bytes > MOST_BYTES && spread.kept().count() >= LEAST_KEPT {
        spread.thin_out();
    }
}

/// Prints which moments are recorded, or why none is.
fn report(moments: &[Taken], whole: Duration, failure: Option<String>) {
    let of = |time: Duration| duration(time.as_nanos() as u64);
    if moments.is_empty() {
        let why = failure.unwrap_or_else(|| format!("it ran for {} and had not worked at {}", of(whole), of(FIRST)));
        print_message(&format!("no snapshot of the command was taken: {why}; it is recorded from its start"));
        return;
    }
    let at: Vec<String> =
        moments.iter().map(|taken| format!("{} ({})", of(taken.at), fixed_percent(taken.share, 0))).collect();
    let longest = moments.iter().flat_map(|taken| &taken.snapshot.pauses).max().copied().unwrap_or_default();
    print_message(&format!(
        "the command ran for {}; {} recorded, at {}, with the share of the run that each stands for; the longest pause of a snapshot was {:.2} s (measured)",
        of(whole),
        counted(moments.len() as u64, "moment"),
        listed(&at, "and"),
        longest.as_secs_f64()
    ));
}
