//! Lines of text between agent and host.

use std::io::{self, Write};
use std::path::PathBuf;

use super::command_status::CommandStatus;
use super::kernel_description::KernelDescription;

/// Sends an order to the agent.
pub(super) fn send_order(to: &mut impl Write, order: &str) -> io::Result<()> {
    let mut frame = (order.len() as u32).to_le_bytes().to_vec();
    frame.push(1);
    frame.extend_from_slice(order.as_bytes());
    to.write_all(&frame)
}

/// Location of a CPU's perf ring in the memory of the guest's first process. It holds `PERF_RECORD_MMAP2`, `COMM`,
/// `FORK` and `EXIT` of every process, is overwritten when full, and its records end with `{u32 pid, tid; u64 time; u32
/// cpu, reserved}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfRing {
    /// The CPU.
    pub cpu: u32,
    /// Virtual address of the `perf_event_mmap_page`; the data pages follow.
    pub at: u64,
    /// Number of the ring's pages in all.
    pub pages: u64,
}

/// A ring with more pages is not from our agent.
const MOST_RING_PAGES: u64 = 1 << 12;

/// Files read ahead of the command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WarmFiles {
    /// Files.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Whether all files were read; if not, the time for reading was over.
    pub whole: bool,
}

/// How a run ahead of the command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarmEnd {
    /// Ended by itself.
    Ended(CommandStatus),
    /// Cut short when its time was over.
    CutShort,
    /// Not set up in the guest: what failed.
    Failed(String),
}

/// Something that happened in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestEvent {
    /// A CPU's perf ring.
    Perf(PerfRing),
    /// The activity that the boot left behind has ended (or not: `settled` is false), after so many ms.
    Quiet {
        /// How long that took, in the guest's ms.
        ms: u64,
        /// Whether the guest became quiet at all.
        settled: bool,
    },
    /// The guest kernel's own description; kept from an earlier boot, or sent by this one.
    Kernel(KernelDescription),
    /// The agent waits for `Guest::go`.
    Ready,
    /// Files that the command will surely read were read ahead.
    Warmed(WarmFiles),
    /// The run ahead of the command has ended.
    WarmRun(WarmEnd),
    /// The command's process exists; the window opens when it executes the command.
    Begin {
        /// Process id inside.
        pid: u32,
    },
    /// The command has ended, and the window is closed.
    Ended {
        /// Wait status.
        status: i32,
    },
}

/// A line of the agent, for the library's own use or for its user.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Event(GuestEvent),
    Refused { stage: String, errno: i32 },
    Kernel(String),
    Deleted(PathBuf),
    NotKept(PathBuf),
    Waits(String),
    Error(String),
    Exit(Totals),
}

/// The agent's last words.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) status: i32,
    pub(super) terminal: u64,
    pub(super) output: u64,
    pub(super) error: u64,
    pub(super) oom_kills: u64,
    pub(super) overlay_full: bool,
}

/// Parses a line; `None`: not a line of this version.
pub(super) fn parse_line(line: &str) -> Option<Line> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let number = |key: &str| -> Option<u64> { parse_number(field(rest, key)?) };
    Some(match word {
        "ready" => Line::Event(GuestEvent::Ready),
        "quiet" => Line::Event(GuestEvent::Quiet { ms: number("ms")?, settled: number("settled")? == 1 }),
        "warmed" => Line::Event(GuestEvent::Warmed(WarmFiles {
            files: number("files")?,
            bytes: number("bytes")?,
            whole: number("whole")? == 1,
        })),
        "warm-run" => {
            let status = CommandStatus::from_wait_status(i32::try_from(number("status")?).ok()?);
            Line::Event(GuestEvent::WarmRun(match rest.split_once("failed=")?.1 {
                "" if number("ended")? == 1 => WarmEnd::Ended(status),
                "" => WarmEnd::CutShort,
                what => WarmEnd::Failed(what.into()),
            }))
        }
        "begin" => Line::Event(GuestEvent::Begin { pid: u32::try_from(number("pid")?).ok()? }),
        "ended" => Line::Event(GuestEvent::Ended { status: i32::try_from(number("status")?).ok()? }),
        "perf" => Line::Event(GuestEvent::Perf(PerfRing {
            cpu: u32::try_from(number("cpu")?).ok()?,
            at: number("at")?,
            pages: number("pages").filter(|pages| (2..=MOST_RING_PAGES).contains(pages))?,
        })),
        "refused" => {
            Line::Refused { stage: field(rest, "stage")?.into(), errno: i32::try_from(number("errno")?).ok()? }
        }
        "deleted" => Line::Deleted(rest.into()),
        "not-kept" => Line::NotKept(rest.into()),
        "kernel" => Line::Kernel(rest.into()),
        "waits" => Line::Waits(rest.into()),
        "error" => Line::Error(rest.split_once("what=").map_or(rest, |(_, what)| what).into()),
        "exit" => Line::Exit(Totals {
            status: i32::try_from(number("status")?).ok()?,
            terminal: number("terminal")?,
            output: number("output")?,
            error: number("error")?,
            oom_kills: number("oom")?,
            overlay_full: number("full")? == 1,
        }),
        _ => return None,
    })
}

fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split(' ').find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_perf_line_names_its_pages() {
        let line = parse_line("perf cpu=1 at=0x1000 pages=257");
        let ring = PerfRing { cpu: 1, at: 0x1000, pages: 257 };
        assert_eq!(line, Some(Line::Event(GuestEvent::Perf(ring))));
        assert_eq!(parse_line("perf cpu=1 at=0x1000 pages=999999"), None);
    }

    #[test]
    fn a_warm_run_ended_was_cut_short_or_failed() {
        let end = |line| match parse_line(line) {
            Some(Line::Event(GuestEvent::WarmRun(end))) => end,
            other => panic!("{other:?}"),
        };
        let ended = WarmEnd::Ended(CommandStatus::Exited(3));
        assert_eq!(end("warm-run status=768 ended=1 failed="), ended);
        assert_eq!(end("warm-run status=0 ended=0 failed="), WarmEnd::CutShort);
        let failed = WarmEnd::Failed("/run: No such file or directory".into());
        assert_eq!(end("warm-run status=0 ended=0 failed=/run: No such file or directory"), failed);
    }
}
