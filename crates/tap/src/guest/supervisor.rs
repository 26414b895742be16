//! Follows a guest from launch to end.

use std::io::{BufRead, BufReader, PipeReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::channel::{Channel, FileKind, Frame, printable};
use super::command_status::CommandStatus;
use super::exit::{self, ExitReason, GuestExit};
use super::host_memory::OomKills;
use super::input::{InputRelay, WaitingInput};
use super::keep::{CodeNames, Unpacker};
use super::kernel::KernelImage;
use super::kernel_description::Gathering;
use super::messages::{GuestEvent, Line, Totals, parse_line};
use super::protocol::Protocol;
use super::relay::{Progress, Tail};
use super::supervision::Supervision;
use super::time_limit;
use super::waits::Waits;

/// The host's side of a guest, until its end.
pub(super) struct Supervisor {
    pub(super) channel: Channel,
    pub(super) protocol: Protocol,
    pub(super) events: Sender<GuestEvent>,
    pub(super) supervision: Arc<Supervision>,
    pub(super) guardian_events: PipeReader,
    pub(super) console: Tail,
    pub(super) log: Tail,
    pub(super) terminal: Option<Arc<Progress>>,
    pub(super) output: Option<Arc<Progress>>,
    pub(super) error: Option<Arc<Progress>>,
    pub(super) unpacker: Unpacker,
    pub(super) waiting_input: Option<WaitingInput>,
    pub(super) input: Option<InputRelay>,
    pub(super) kernel: KernelImage,
    pub(super) gathering: Option<Gathering>,
    pub(super) host_memory: OomKills,
    pub(super) program: String,
    pub(super) directory: String,
    pub(super) run_ahead: Duration,
    pub(super) timeout: Option<Duration>,
}

/// Files deleted that are named; the others are counted.
const NAMED: usize = 1000;

#[derive(Default)]
struct Received {
    kernel: Option<String>,
    deleted: Vec<PathBuf>,
    more_deleted: u64,
    not_kept: Option<PathBuf>,
    not_kept_count: u64,
    refused: Option<(String, i32)>,
    error: Option<String>,
    waits: Waits,
}

impl Supervisor {
    /// Runs until the guest is gone.
    pub(super) fn run(mut self) -> GuestExit {
        let mut seen = Received::default();
        let exit = match self.follow(&mut seen) {
            Ok(Some(totals)) => {
                let missing = self.finish_streams(&totals);
                self.end_quietly();
                let mut exit = self.command_ended(&totals, seen);
                exit.notes.extend(missing);
                exit
            }
            Ok(None) => self.broke_off(seen),
            Err(why) => self.broke_off(Received { error: Some(why), ..seen }),
        };
        drop(self.input.take());
        exit
    }

    /// The agent's last word, or `None` when the guest ended without one. Errors: why it is not listened to any longer.
    fn follow(&mut self, seen: &mut Received) -> Result<Option<Totals>, String> {
        loop {
            match self.channel.next().map_err(|broken| self.protocol.violation(&broken.to_string()))? {
                Some(Frame::Text(text)) => {
                    if let Some(totals) = self.text(&text, seen)? {
                        return Ok(Some(totals));
                    }
                }
                Some(Frame::File(kind, part)) => self.file(kind, &part)?,
                Some(Frame::Tar(part)) => self.archive(part)?,
                None => return Ok(None),
            }
        }
    }

    fn text(&mut self, text: &str, seen: &mut Received) -> Result<Option<Totals>, String> {
        let Some(line) = parse_line(text) else {
            let start: String = text.chars().take(80).collect();
            return Err(self.protocol.violation(&format!("\"{start}\"")));
        };
        self.protocol.line(&line).map_err(|what| self.protocol.violation(&what))?;
        match line {
            Line::Event(event) => self.event(event)?,
            Line::Deleted(path) if seen.deleted.len() < NAMED => seen.deleted.push(path),
            Line::Deleted(_) => seen.more_deleted += 1,
            Line::NotKept(path) => {
                seen.not_kept_count += 1;
                seen.not_kept.get_or_insert(path);
            }
            Line::Refused { stage, errno } => seen.refused = Some((stage, errno)),
            Line::Kernel(line) => seen.kernel = Some(line),
            Line::Waits(line) => self.waits(&line, seen)?,
            Line::Error(what) => return Err(what),
            Line::Exit(totals) => return Ok(Some(totals)),
        }
        Ok(None)
    }

    fn event(&mut self, event: GuestEvent) -> Result<(), String> {
        if event == GuestEvent::Ready {
            if let Some(gathering) = self.gathering.take() {
                let description = gathering.finish(&self.kernel)?;
                // The events may have no receiver; the guest goes on all the same.
                drop(self.events.send(GuestEvent::Kernel(description)));
            }
            self.supervision.now_ready();
            time_limit::of_start(self.run_ahead, &self.supervision);
        }
        if matches!(event, GuestEvent::Begin { .. }) {
            self.supervision.now_begun();
            self.limit_command();
            // Not before: until then an interrupt that is typed ends nearmiss.
            self.input = self.waiting_input.take().and_then(|input| input.start(&self.supervision).ok());
        }
        drop(self.events.send(event));
        Ok(())
    }

    fn limit_command(&mut self) {
        if let (Some(limit), Ok(orders)) = (self.timeout.take(), self.channel.orders()) {
            time_limit::of_command(limit, &self.supervision, orders);
        }
    }

    fn waits(&self, line: &str, seen: &mut Received) -> Result<(), String> {
        if !self.supervision.waits_requested() {
            return Err(self.protocol.violation("\"waits\" without a request"));
        }
        if seen.waits.line(line) {
            self.supervision.end(ExitReason::TimedOut);
        }
        Ok(())
    }

    fn file(&mut self, kind: FileKind, part: &[u8]) -> Result<(), String> {
        let taken = self.protocol.file().and_then(|()| match &mut self.gathering {
            Some(gathering) => gathering.take(kind, part),
            None => Ok(()),
        });
        taken.map_err(|what| self.protocol.violation(&what))
    }

    fn archive(&mut self, part: Vec<u8>) -> Result<(), String> {
        self.protocol.archive().map_err(|what| self.protocol.violation(&what))?;
        self.unpacker.push(part);
        Ok(())
    }

    /// Waits for the bytes that the agent reports as carried; returns what is missing, if something is.
    fn finish_streams(&self, totals: &Totals) -> Option<String> {
        let streams = [(&self.terminal, totals.terminal), (&self.output, totals.output), (&self.error, totals.error)];
        let waited = streams.into_iter().filter_map(|(progress, bytes)| progress.as_ref()?.wait_for(bytes).err());
        let missing: u64 = waited.fold(0, u64::saturating_add);
        (missing > 0).then(|| format!("{missing} bytes of output that the guest announced never came"))
    }

    /// Lets QEMU and its plugin finish, but not for long.
    fn end_quietly(&mut self) {
        self.supervision.request_end();
        self.end_soon();
    }

    /// Waits a little for the guardian's word on how the programs ended, then ends them.
    fn end_soon(&mut self) {
        let waits = &mut [PollFd::new(&self.guardian_events, PollFlags::IN)];
        // The end comes next, for any answer of poll.
        let _ = poll(waits, Some(&Timespec { tv_sec: 2, tv_nsec: 0 }));
        self.supervision.kill();
    }

    fn command_ended(&mut self, totals: &Totals, seen: Received) -> GuestExit {
        if let Some((stage, errno)) = &seen.refused {
            let why = exit::refusal(stage, *errno, &self.program, &self.directory);
            return GuestExit::of(ExitReason::Refused(why));
        }
        let mut notes = exit::notes(totals, seen.kernel.as_deref());
        let code_names = self.unpacker.finish().unwrap_or_else(|error| {
            notes.push(printable(&error));
            CodeNames::new()
        });
        if let Some(first) = &seen.not_kept {
            let count = seen.not_kept_count;
            notes.push(format!(
                "{count} of the command's devices, sockets or pipes were not kept: {} ...",
                first.display()
            ));
        }
        if seen.more_deleted > 0 {
            notes.push(format!("{} more files that the command deleted are not named", seen.more_deleted));
        }
        GuestExit {
            status: Some(CommandStatus::from_wait_status(totals.status)),
            reason: ExitReason::Ended,
            notes,
            out_of_memory: totals.oom_kills > 0,
            deleted: seen.deleted,
            code_names,
            waits: Vec::new(),
        }
    }

    fn broke_off(&mut self, seen: Received) -> GuestExit {
        self.end_soon();
        let ends: Vec<String> = BufReader::new(&mut self.guardian_events).lines().map_while(Result::ok).collect();
        let console = printable_lines(&self.console.final_text());
        let requested = self.supervision.reason().filter(|_| seen.error.is_none());
        let reason = requested.or_else(|| exit::from_console(&console)).unwrap_or_else(|| {
            let mut parts: Vec<String> = seen.error.into_iter().collect();
            parts.extend(ends.iter().map(|end| exit::program_end(end)));
            if ends.iter().any(|end| end.ends_with(" signal 9")) {
                parts.extend(self.host_memory.since().map(str::to_owned));
            }
            parts.extend(last_lines(&printable_lines(&self.log.final_text()), 5));
            parts.extend(last_lines(&console, 3));
            if parts.is_empty() {
                parts.push("the guest ended without a word".into());
            }
            ExitReason::Failed(parts.join("; "))
        });
        GuestExit { waits: seen.waits.sentences(), ..GuestExit::of(reason) }
    }
}

fn printable_lines(text: &str) -> String {
    text.lines().map(|line| printable(line.trim_end()) + "\n").collect()
}

fn last_lines(text: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].iter().map(ToString::to_string).collect()
}
