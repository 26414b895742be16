//! One function looked at closely, and the log line by line.

use super::hot::{Hot, call_sites, hottest, instructions, lines_of, total};
use super::words::{cut, place, short, time};
use crate::name::plain;
use crate::number::{grouped, percent_of};
use nearmiss_record::observed::{Observed, Profile};
use std::fmt::Write;

/// One function by source line, by instruction and by call site, for every event that was sampled; `None` where no
/// sample fell on it. `top`: rows of each table.
pub fn function(observed: &Observed, name: &str, width: usize, top: usize) -> Option<String> {
    let profile = observed.profile.as_ref()?;
    let mut out = String::new();
    for (index, event) in profile.events.iter().enumerate() {
        let (all, _) = total(profile, index as u32);
        let Some(row) = hottest(profile, index as u32).into_iter().find(|h| h.name == name && h.samples > 0) else {
            continue;
        };
        let _ = writeln!(
            out,
            "{} in {}: {} of {} samples of {} ({}), measured",
            plain(name),
            plain(short(&row.module)),
            grouped(row.samples),
            grouped(all),
            event.name,
            percent_of(row.samples, all)
        );
        one_event(&mut out, profile, index as u32, &row, width, top);
    }
    (!out.is_empty()).then_some(out)
}

fn one_event(out: &mut String, profile: &Profile, event: u32, row: &Hot, width: usize, top: usize) {
    let mut table = |title: &str, rows: Vec<(u64, String)>| {
        if !rows.is_empty() {
            let _ = writeln!(out, "  {title}");
        }
        let left = rows.len().saturating_sub(top);
        for (samples, name) in rows.iter().take(top) {
            let _ = writeln!(out, "    {:>6}  {name}", percent_of(*samples, row.samples));
        }
        if left > 0 {
            let rest: u64 = rows.iter().skip(top).map(|r| r.0).sum();
            let _ = writeln!(out, "    {:>6}  {left} more", percent_of(rest, row.samples));
        }
    };
    let room = width.saturating_sub(12);
    let sites = call_sites(profile, event, &row.name).into_iter().map(|s| {
        let at = if s.frame.line.is_empty() { String::new() } else { format!(" at {}", s.frame.line) };
        (s.samples, cut(&plain(&format!("{}{at}", s.frame.function)), room))
    });
    table("called from", sites.collect());
    let named = |h: Hot| (h.samples, place(&plain(&h.name), room));
    table("by line", lines_of(profile, event, &row.name).into_iter().map(named).collect());
    let named = |h: Hot| (h.samples, place(&plain(h.name.trim_end()), room));
    table(
        "by instruction (address in the module)",
        instructions(profile, event, &row.name).into_iter().map(named).collect(),
    );
}

/// A lock wait or poll of the log.
#[derive(Clone, Copy, Debug)]
pub struct LogLine<'a> {
    /// Its end, from the start of the observation.
    pub end_ns: u64,
    /// How long it was.
    pub length_ns: u64,
    /// Thread.
    pub thread: u64,
    /// CPU it ended on.
    pub cpu: u64,
    /// What waited for what.
    pub what: &'a str,
}

/// The log, a line an entry.
pub fn log(entries: &[LogLine<'_>]) -> String {
    let mut out = format!("{:>12} {:>9} {:>8} {:>4}  {}\n", "ended at s", "took", "thread", "CPU", "what, measured");
    for e in entries {
        let seconds = e.end_ns as f64 / 1e9;
        let _ =
            writeln!(out, "{seconds:>12.6} {:>9} {:>8} {:>4}  {}", time(e.length_ns), e.thread, e.cpu, plain(e.what));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::{Event, Frame, Sample};

    #[test]
    fn a_function_is_taken_apart() {
        let frame = |function: &str, line: &str, address| Frame {
            function: function.into(),
            module: "/bin/m".into(),
            line: line.into(),
            address,
            ..Frame::default()
        };
        let sample = |stack| Sample { stack, weight: 1, ..Sample::default() };
        let profile = Profile {
            events: vec![Event { name: "cpu-clock".into(), role: "clock".into(), ..Event::default() }],
            frames: vec![frame("f", "a.c:1", 16), frame("f", "a.c:2", 32), frame("g", "a.c:9", 64)],
            stacks: vec![vec![0, 2], vec![1, 2], vec![2]],
            threads: vec![(1, 1, "t".into())],
            samples: vec![sample(0), sample(0), sample(0), sample(1), sample(2)],
        };
        let observed = Observed { profile: Some(profile), ..Observed::default() };
        let page = function(&observed, "f", 80, 1).unwrap();
        assert_eq!(
            page,
            "f in m: 4 of 5 samples of cpu-clock (80.0%), measured\n  called from\n    100.0%  g at a.c:9\n  by line\n     \
             75.0%  a.c:1\n     25.0%  1 more\n  by instruction (address in the module)\n     75.0%  0x10 a.c:1\n     \
             25.0%  1 more\n"
        );
        assert_eq!(function(&observed, "h", 80, 1), None);
    }
}
