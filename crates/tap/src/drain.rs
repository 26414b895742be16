//! The ring drained into a sink, until the window is closed: by the command's end, a plan, or an interrupt.

use super::error::TapError;
use super::guest::{ForwardSignals, Guest};
use super::parts::{Covered, Due, Parts, Schedule};
use super::ring::{Next, Ring};
use super::watch::Watch;
use nearmiss_record::abi::{self, CHUNK_LAST, ChunkHeader};
use nearmiss_record::reference::Record;
use nearmiss_record::trace::{TraceHeader, Validator};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// An interrupted command has so long to end by itself; then it is ended, and what was recorded is kept.
const GRACE: Duration = Duration::from_millis(800);
/// Time that a guest has to end in order after its command was ended, and longer where files are to be copied out of
/// it.
const ORDERLY: Duration = Duration::from_secs(2);
const ORDERLY_WITH_FILES: Duration = Duration::from_secs(60);
/// Calls are followed in pauses until they have this share of a plan's records: each replay reads them.
const FOLLOWED_RECORDS: f64 = 0.5;

/// How far a recording is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Under {
    /// Since the window opened.
    pub elapsed: Duration,
    /// Records so far, payload included.
    pub records: u64,
    /// Instructions recorded so far, of all CPUs.
    pub instructions: u64,
    /// The part under way, from 1 on.
    pub part: u32,
    /// Between two parts.
    pub paused: bool,
}

/// Shows how far a recording is.
pub type OnProgress = dyn Fn(&Under);

/// Takes the stream. An error ends the recording.
pub type Sink<'a> = dyn FnMut(&ChunkHeader, &[Record]) -> Result<(), String> + 'a;

/// A stream that is being drained.
pub(super) struct Drain<'a> {
    pub(super) guest: &'a Guest,
    pub(super) signals: &'a ForwardSignals,
    pub(super) plan: Option<Parts>,
    pub(super) on_progress: Option<&'a OnProgress>,
}

/// Results of the drain.
#[derive(Default)]
pub(super) struct Drained {
    pub(super) records: u64,
    pub(super) complete: bool,
    pub(super) notes: Vec<String>,
    pub(super) covered: Option<Covered>,
    /// An interrupt closed the window.
    pub(super) interrupted: bool,
}

/// State of a stream under way.
#[derive(Default)]
struct Flow {
    drained: Drained,
    schedule: Option<Schedule>,
    /// Parts and pauses end at instructions. A server waits for its clients, and the guest's clock goes on meanwhile.
    by_instructions: bool,
    stopped: bool,
    instructions: BTreeMap<u32, u64>,
    /// Records that are references. Calls that are followed in pauses have records too, which are no part's.
    references: u64,
}

impl Drain<'_> {
    /// Until the last chunk, or the guest's end.
    pub(super) fn run(
        &self,
        ring: &mut Ring,
        header: &TraceHeader,
        watch: &mut Watch<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<Drained, TapError> {
        let mut flow = Flow { by_instructions: !header.starts_late, ..Flow::default() };
        let mut validator = Validator::new(header, None);
        if let Some(plan) = self.plan.filter(|_| flow.by_instructions) {
            let now = Instant::now();
            ring.set_lengths(Schedule::begin(plan, now).opening(now));
            ring.follow(!plan.followed.is_zero());
        }
        let mut last_look = false;
        while !flow.drained.complete {
            watch.look(ring);
            self.act(ring, watch, &mut flow);
            match ring.next(Duration::from_millis(20)).map_err(TapError::BadRecord)? {
                Next::Chunk(head, records) => {
                    check(&mut validator, head, records)?;
                    sink(head, records).map_err(TapError::Sink)?;
                    flow.count(head, records, validator.references());
                    let found = watch.chunk(head, records);
                    found.pass_to(ring);
                    ring.release();
                    last_look = false;
                }
                Next::Nothing => {
                    if last_look || ring.state() == abi::State::Failed {
                        break;
                    }
                    // Data that the guest published before its end may still be on its way.
                    last_look = self.guest.has_ended();
                }
            }
        }
        flow.drained.covered = flow.schedule.take().map(|schedule| schedule.end(Instant::now(), ring.seen(0)));
        Ok(flow.drained)
    }

    /// Pauses, goes on or ends, where that is due.
    fn act(&self, ring: &Ring, watch: &Watch<'_>, flow: &mut Flow) {
        let now = Instant::now();
        if self.signals.interrupted_for().is_some_and(|time| time >= GRACE) && !flow.stopped {
            (flow.stopped, flow.drained.interrupted) = (true, true);
            ring.stop();
        }
        let (Some(opened), _) = watch.times() else { return };
        if let Some(plan) = self.plan {
            let by_instructions = flow.by_instructions;
            let schedule = flow.schedule.get_or_insert_with(|| {
                let mut schedule = Schedule::begin(plan, opened);
                if by_instructions {
                    schedule.opening(opened);
                }
                schedule
            });
            match schedule.look(now, ring.seen(flow.references)) {
                Some(Due::Pause) => ring.pause(true),
                Some(Due::GoOn) => ring.pause(false),
                Some(Due::End) => ring.stop(),
                None => {}
            }
            if flow.by_instructions {
                ring.set_lengths(schedule.offer(now));
            }
            let beside = flow.drained.records - flow.references;
            ring.follow(schedule.follows(now) && beside as f64 <= plan.all_records as f64 * FOLLOWED_RECORDS);
        }
        if let Some(on_progress) = self.on_progress {
            let (part, paused) = flow.schedule.as_ref().map_or((1, false), Schedule::part);
            let (records, instructions) = (flow.drained.records, flow.instructions.values().sum());
            on_progress(&Under { elapsed: now - opened, records, instructions, part, paused });
        }
    }

    /// Ends the command; its window is closed.
    pub(super) fn end_command(guest: &Guest, has_files: bool) {
        // A guest that is gone takes no orders, which is no loss.
        let _ = guest.signal(signal_hook::consts::SIGKILL);
        let (begun, limit) = (Instant::now(), if has_files { ORDERLY_WITH_FILES } else { ORDERLY });
        while !guest.has_ended() && begun.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !guest.has_ended() {
            guest.kill();
        }
    }
}

impl Flow {
    /// Counts a chunk, up to which there were so many references.
    fn count(&mut self, head: &ChunkHeader, records: &[Record], references: u64) {
        self.drained.records += records.len() as u64;
        self.drained.complete = head.flags & CHUNK_LAST != 0;
        self.instructions.insert(head.vcpu, head.instructions);
        self.references = references;
    }
}

fn check(validator: &mut Validator, head: &ChunkHeader, records: &[Record]) -> Result<(), TapError> {
    validator.chunk(head, records).map_err(|bad| {
        let place = format!("vCPU {}, record {}, chunk {}", bad.vcpu, bad.record, bad.chunk);
        TapError::BadRecord(format!("{place}: {}", bad.what))
    })
}
