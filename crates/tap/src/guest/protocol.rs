//! Lines that the agent may send, and when.
//!
//! Until the agent reports that it is ready, nothing else runs in the guest, and its lines are trusted. From then on
//! programs of the user run there. One that runs as root can take the agent's place, or the kernel's, and no seal in
//! the guest would survive that. So the host accepts only what it still needs: how the run went.

use super::config::WarmUp;
use super::messages::{GuestEvent, Line};

/// The host's requests to this guest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requested {
    /// The kernel's symbols and types.
    pub(super) kernel: bool,
    pub(super) warm_up: WarmUp,
    /// Files that the command wrote.
    pub(super) keep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Booting,
    Ready,
    ReadAhead,
    RanAhead,
    Running,
    Ended,
}

/// Files that the command deleted, or that cannot be kept.
const MOST_FILES: u32 = 1 << 20;
/// Other remarks on the command's end take a line or two.
const MOST_REMARKS: u32 = 16;

/// Checks the order of the agent's lines.
pub(super) struct Protocol {
    requested: Requested,
    phase: Phase,
    files: u32,
    remarks: u32,
}

impl Protocol {
    pub(super) fn new(requested: Requested) -> Self {
        Self { requested, phase: Phase::Booting, files: 0, remarks: 0 }
    }

    /// Checks a line. Errors: it is out of place, or was not requested.
    pub(super) fn line(&mut self, line: &Line) -> Result<(), String> {
        use GuestEvent as Event;
        use Phase::{Booting, Ended, RanAhead, ReadAhead, Ready, Running};
        self.phase = match (self.phase, line) {
            (phase, Line::Error(_)) => phase,
            (Booting, Line::Event(Event::Perf(_) | Event::Quiet { .. })) => Booting,
            (Booting, Line::Event(Event::Ready)) => Ready,
            (Ready, Line::Event(Event::Warmed(_))) if self.requested.warm_up != WarmUp::Nothing => ReadAhead,
            (ReadAhead, Line::Event(Event::WarmRun(_))) if matches!(self.requested.warm_up, WarmUp::Run(_)) => RanAhead,
            (Ready | ReadAhead | RanAhead, Line::Event(Event::Begin { .. })) => Running,
            (Running, Line::Event(Event::Ended { .. })) => Ended,
            (Ended, Line::Deleted(_) | Line::NotKept(_)) if self.requested.keep => {
                one_more(&mut self.files, MOST_FILES, "files that are not kept")?
            }
            (Ended, Line::Refused { .. } | Line::Kernel(_)) => {
                one_more(&mut self.remarks, MOST_REMARKS, "remarks on its end")?
            }
            // The caller checks whether it was requested: a time limit expires at any moment.
            (phase @ (Running | Ended), Line::Waits(_)) => phase,
            (Ended, Line::Exit(_)) => Ended,
            _ => return Err(out_of_place(line)),
        };
        Ok(())
    }

    /// Checks whether a part of the kernel's symbols or types may come now.
    pub(super) fn file(&self) -> Result<(), String> {
        if self.requested.kernel && self.phase == Phase::Booting {
            return Ok(());
        }
        Err("symbols or types of the kernel without a request".into())
    }

    /// Checks whether a part of an archive may come now: the names of code come without a request.
    pub(super) fn archive(&self) -> Result<(), String> {
        if self.phase == Phase::Ended { Ok(()) } else { Err("files before the command's end".into()) }
    }

    /// Describes a line that should not have come.
    pub(super) fn violation(&self, what: &str) -> String {
        match self.phase {
            Phase::Booting => format!("the guest's agent sent {what} (a defect of nearmiss; please report it)"),
            _ => format!("a program in the guest took the agent's channel, which only root can, and sent {what}"),
        }
    }
}

fn one_more(count: &mut u32, most: u32, what: &str) -> Result<Phase, String> {
    *count += 1;
    if *count > most { Err(format!("more than {most} {what}")) } else { Ok(Phase::Ended) }
}

fn out_of_place(line: &Line) -> String {
    let word = match line {
        Line::Event(GuestEvent::Perf(_)) => "perf",
        Line::Event(GuestEvent::Quiet { .. }) => "quiet",
        Line::Event(GuestEvent::Ready) => "ready",
        Line::Event(GuestEvent::Warmed(_)) => "warmed",
        Line::Event(GuestEvent::WarmRun(_)) => "warm-run",
        Line::Event(GuestEvent::Begin { .. }) => "begin",
        Line::Event(GuestEvent::Ended { .. }) => "ended",
        Line::Event(GuestEvent::Kernel(_)) => "kernel files",
        Line::Refused { .. } => "refused",
        Line::Kernel(_) => "kernel",
        Line::Waits(_) => "waits",
        Line::Deleted(_) => "deleted",
        Line::NotKept(_) => "not-kept",
        Line::Error(_) => "error",
        Line::Exit(_) => "exit",
    };
    format!("\"{word}\" out of place")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::messages::parse_line;
    use super::*;
    use std::time::Duration;

    const PERF: &str = "perf cpu=0 at=0x1000 pages=257";
    const EXIT: &str = "exit status=0 terminal=0 output=0 error=0 oom=0 full=0";
    const WARMED: &str = "warmed files=1 bytes=2 whole=1";
    const RAN: &str = "warm-run status=0 ended=1 failed=";
    const ALL: Requested = Requested { kernel: true, warm_up: WarmUp::Run(Duration::ZERO), keep: true };
    const LEAST: Requested = Requested { kernel: false, warm_up: WarmUp::Nothing, keep: false };

    fn after(requested: Requested, lines: &[&str]) -> Result<Protocol, String> {
        let mut protocol = Protocol::new(requested);
        for line in lines {
            protocol.line(&parse_line(line).unwrap())?;
        }
        Ok(protocol)
    }

    #[test]
    fn a_run_as_it_goes_is_accepted() {
        let whole = [
            PERF,
            "quiet ms=50 settled=1",
            "ready",
            WARMED,
            RAN,
            "begin pid=7",
            "ended status=0",
            "refused stage=exec errno=2",
            "kernel trap",
            "deleted /a",
            "not-kept /b",
            EXIT,
        ];
        after(ALL, &whole).unwrap();
        after(LEAST, &["ready", "begin pid=7", "ended status=0", EXIT]).unwrap();
        after(LEAST, &["error errno=2 what=cannot mount /root"]).unwrap();
    }

    #[test]
    fn every_line_has_its_time() {
        let refused = |requested, lines: &[&str]| after(requested, lines).err().unwrap();
        assert_eq!(refused(ALL, &["ready", PERF]), "\"perf\" out of place");
        assert_eq!(refused(ALL, &["ready", "ready"]), "\"ready\" out of place");
        assert_eq!(refused(ALL, &["ready", WARMED, WARMED]), "\"warmed\" out of place");
        assert_eq!(refused(ALL, &["ready", WARMED, RAN, RAN]), "\"warm-run\" out of place");
        assert_eq!(refused(ALL, &["begin pid=7"]), "\"begin\" out of place");
        assert_eq!(refused(ALL, &["ready", "begin pid=7", "begin pid=8"]), "\"begin\" out of place");
        assert_eq!(refused(ALL, &["ready", "begin pid=7", "kernel x"]), "\"kernel\" out of place");
        assert_eq!(refused(ALL, &["ready", "begin pid=7", EXIT]), "\"exit\" out of place");
    }

    #[test]
    fn lines_and_files_without_a_request_are_refused() {
        let refused = |lines: &[&str]| after(LEAST, lines).err().unwrap();
        assert_eq!(refused(&["ready", WARMED]), "\"warmed\" out of place");
        assert_eq!(refused(&["ready", "begin pid=7", "ended status=0", "deleted /a"]), "\"deleted\" out of place");
        assert!(Protocol::new(LEAST).file().is_err() && Protocol::new(ALL).file().is_ok());
        let ready = after(ALL, &["ready"]).unwrap();
        assert!(ready.file().is_err() && ready.archive().is_err());
        let ended = ["ready", "begin pid=7", "ended status=0"];
        assert!(after(ALL, &ended).unwrap().archive().is_ok());
        assert!(after(LEAST, &ended).unwrap().archive().is_ok(), "names of code need no request");
    }

    #[test]
    fn lines_after_the_end_are_bounded() {
        for (line, most) in [("deleted /a", 1 << 20), ("not-kept /b", 1 << 20), ("kernel x", 16)] {
            let mut protocol = after(ALL, &["ready", "begin pid=7", "ended status=0"]).unwrap();
            let line = parse_line(line).unwrap();
            let taken = (0..).take_while(|_| protocol.line(&line).is_ok()).count();
            assert_eq!(taken, most, "{line:?}");
        }
    }
}
