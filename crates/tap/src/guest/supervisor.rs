//! Follows a guest from launch to end.

use std::io::{BufRead, BufReader, PipeReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::exit::{self, CommandStatus, ExitReason, GuestExit};
use super::input::{InputRelay, WaitingInput};
use super::keep::Unpacker;
use super::kernel::store;
use super::messages::{Frame, GuestEvent, Line, Totals, parse_line, read_frame};
use super::relay::{Progress, Tail};
use super::supervision::Supervision;
use super::time_limit;
use super::waits::Waits;

/// The host's side of a guest, until its end.
pub(super) struct Supervisor {
    pub(super) control: UnixStream,
    pub(super) events: Sender<GuestEvent>,
    pub(super) supervision: Arc<Supervision>,
    pub(super) guardian_events: PipeReader,
    pub(super) console: Tail,
    pub(super) log: Tail,
    pub(super) terminal: Option<Arc<Progress>>,
    pub(super) output: Option<Arc<Progress>>,
    pub(super) error: Option<Arc<Progress>>,
    pub(super) unpacker: Option<Unpacker>,
    pub(super) waiting_input: Option<WaitingInput>,
    pub(super) input: Option<InputRelay>,
    pub(super) kallsyms: PathBuf,
    pub(super) btf: PathBuf,
    pub(super) program: String,
    pub(super) directory: String,
    pub(super) run_ahead: Duration,
    pub(super) timeout: Option<Duration>,
}

#[derive(Default)]
struct Seen {
    kernel: Vec<String>,
    deleted: Vec<PathBuf>,
    not_kept: Vec<PathBuf>,
    refused: Option<(String, i32)>,
    error: Option<String>,
    kallsyms: Vec<u8>,
    btf: Vec<u8>,
    waits: Waits,
}

impl Supervisor {
    /// Runs until the guest is gone.
    pub(super) fn run(mut self) -> GuestExit {
        let mut seen = Seen::default();
        let totals = self.follow(&mut seen);
        let exit = match totals {
            Some(totals) => {
                self.finish_streams(&totals);
                self.end_quietly();
                self.command_ended(&totals, seen)
            }
            None => self.broke_off(seen),
        };
        drop(self.input.take());
        exit
    }

    /// The agent's last word, or `None` when the guest ended without one.
    fn follow(&mut self, seen: &mut Seen) -> Option<Totals> {
        loop {
            let text = match read_frame(&mut self.control) {
                Ok(Some(Frame::Text(text))) => text,
                Ok(Some(Frame::Kallsyms(part))) => {
                    collect(&mut seen.kallsyms, &part, &self.kallsyms);
                    continue;
                }
                Ok(Some(Frame::Btf(part))) => {
                    collect(&mut seen.btf, &part, &self.btf);
                    continue;
                }
                Ok(Some(Frame::Tar(part))) => {
                    if let Some(unpacker) = &mut self.unpacker {
                        unpacker.push(part);
                    }
                    continue;
                }
                Ok(None) => return None,
                Err(error) => {
                    if error.kind() == std::io::ErrorKind::InvalidData {
                        seen.error = Some(error.to_string());
                    }
                    return None;
                }
            };
            match parse_line(&text) {
                // Nobody may be listening to the events; the guest goes on all the same.
                Some(Line::Event(event)) => {
                    if event == GuestEvent::Ready {
                        self.supervision.now_ready();
                        time_limit::of_start(self.run_ahead, &self.supervision);
                    }
                    if matches!(event, GuestEvent::Begin { .. }) {
                        self.supervision.now_begun();
                        self.limit_command();
                        // Not before: until then an interrupt that is typed ends nearmiss.
                        self.input = self.waiting_input.take().and_then(|input| input.start(&self.supervision).ok());
                    }
                    // Nobody may be listening; the guest goes on all the same.
                    drop(self.events.send(event));
                }
                Some(Line::Deleted(path)) => seen.deleted.push(path),
                Some(Line::NotKept(path)) => seen.not_kept.push(path),
                Some(Line::Refused { stage, errno }) => seen.refused = Some((stage, errno)),
                Some(Line::Kernel(line)) => seen.kernel.push(line),
                Some(Line::Waits(line)) => {
                    if self.supervision.has_asked_for_waits() && seen.waits.line(&line) {
                        self.supervision.end(ExitReason::TimedOut);
                    }
                }
                Some(Line::Error(what)) => {
                    seen.error = Some(what);
                    return None;
                }
                Some(Line::Exit(totals)) => return Some(totals),
                None => seen.error = Some(format!("the guest's agent said \"{text}\"")),
            }
        }
    }

    fn limit_command(&mut self) {
        if let (Some(limit), Ok(control)) = (self.timeout.take(), self.control.try_clone()) {
            time_limit::of_command(limit, &self.supervision, control);
        }
    }

    fn finish_streams(&self, totals: &Totals) {
        let streams = [(&self.terminal, totals.terminal), (&self.output, totals.output), (&self.error, totals.error)];
        for (progress, bytes) in streams {
            if let Some(progress) = progress {
                progress.wait_for(bytes);
            }
        }
    }

    /// Lets QEMU and its plugin finish, but not for long.
    fn end_quietly(&mut self) {
        self.supervision.ask_to_end();
        self.end_soon();
    }

    /// Waits a little for the guardian's word on how the programs ended, then ends them.
    fn end_soon(&mut self) {
        let waits = &mut [PollFd::new(&self.guardian_events, PollFlags::IN)];
        // Whatever poll answers, the end comes next.
        let _ = poll(waits, Some(&Timespec { tv_sec: 2, tv_nsec: 0 }));
        self.supervision.kill();
    }

    fn command_ended(&mut self, totals: &Totals, seen: Seen) -> GuestExit {
        if let Some((stage, errno)) = &seen.refused {
            let why = exit::refusal(stage, *errno, &self.program, &self.directory);
            return GuestExit { status: None, reason: ExitReason::Refused(why), ..GuestExit::default() };
        }
        let mut notes = exit::notes(totals, &seen.kernel);
        if let Some(error) = self.unpacker.as_mut().and_then(Unpacker::finish) {
            notes.push(format!("what the command wrote could not be kept whole: {error}"));
        }
        if let Some(first) = seen.not_kept.first() {
            let count = seen.not_kept.len();
            notes.push(format!(
                "{count} of the command's devices, sockets or pipes were not kept: {} ...",
                first.display()
            ));
        }
        GuestExit {
            status: Some(CommandStatus::from_wait_status(totals.status)),
            reason: ExitReason::Ended,
            notes,
            deleted: seen.deleted,
            waits: Vec::new(),
        }
    }

    fn broke_off(&mut self, seen: Seen) -> GuestExit {
        self.end_soon();
        let ends: Vec<String> = BufReader::new(&mut self.guardian_events).lines().map_while(Result::ok).collect();
        let console = self.console.final_text();
        let asked_for = self.supervision.reason().filter(|_| seen.error.is_none());
        let reason = asked_for.or_else(|| exit::from_console(&console)).unwrap_or_else(|| {
            let mut parts: Vec<String> = seen.error.into_iter().collect();
            parts.extend(ends.iter().map(|end| exit::program_end(end)));
            parts.extend(last_lines(&self.log.final_text(), 5));
            parts.extend(last_lines(&console, 3));
            ExitReason::Failed(parts.join("; "))
        });
        GuestExit { reason, waits: seen.waits.sentences(), ..GuestExit::default() }
    }
}

fn last_lines(text: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].iter().map(ToString::to_string).collect()
}

/// Gathers parts of a file; an empty part is its end, when it is stored for later runs.
fn collect(whole: &mut Vec<u8>, part: &[u8], path: &std::path::Path) {
    const LARGEST: usize = 256 << 20;
    if !part.is_empty() {
        if whole.len() + part.len() <= LARGEST {
            whole.extend_from_slice(part);
        }
    } else if !whole.is_empty() {
        // A cache that cannot be written costs the next boot some time, no more.
        let _ = store(path, whole);
        whole.clear();
    }
}
