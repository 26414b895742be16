use nearmiss_analysis::AppliedRecord;
use nearmiss_record::words::{counted, grouped};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/pace-applied/1`.
pub(super) const SCHEMA: &str = "nearmiss/pace-applied/1";

/// The format of the record.
pub(in crate::pace) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Acts of the remedy on a command: counted by the library inside it. A thread that the process's end stops may keep
/// back some sixty calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/pace-applied/1`.
    pub schema: String,
    /// How far apart the waits are: `every 1ms`, or `within 1ms` of added latency.
    pub aim: String,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Waits for events.
    pub calls: u64,
    /// Calls before which the thread slept.
    pub sleeps: u64,
    /// How long it slept in all.
    pub slept_ns: u64,
    /// Events that the calls returned.
    pub events: u64,
    /// The other calls, by what kept the thread awake.
    pub awake: Awake,
}

/// Calls without a sleep, by the rule that kept the thread awake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Awake {
    /// The call itself did not wait.
    pub at_once: u64,
    /// The thread's first.
    pub first: u64,
    /// The interval was over.
    pub late: u64,
    /// Too few events would have gathered.
    pub sparse: u64,
    /// The call cost too much for the interval.
    pub dear: u64,
    /// Sleeps cost what they save, or the wait was one of those that sleeps are compared with.
    pub no_gain: u64,
    /// A descriptor of the last return was readable still.
    pub left_over: u64,
    /// The last return's descriptors were not known, as those in an epoll set that another program filled.
    pub not_known: u64,
}

impl Awake {
    pub(super) fn total(&self) -> u64 {
        self.rows().iter().map(|(calls, _)| calls).sum()
    }

    fn rows(&self) -> [(u64, &'static str); 8] {
        [
            (self.at_once, "with timeout 0"),
            (self.first, "first of a thread"),
            (self.late, "after the interval"),
            (self.sparse, "sparse events"),
            (self.dear, "dear calls"),
            (self.no_gain, "no gain, or compared"),
            (self.left_over, "events left over"),
            (self.not_known, "descriptors not known"),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.calls == 0 {
            return write!(out, "pace (measured): engaged, {}, but no thread that it reaches waited", self.aim);
        }
        let (calls, sleeps) = (counted(self.calls, "wait"), counted(self.sleeps, "sleep"));
        let events = counted(self.events, "event");
        write!(out, "pace (measured): engaged, {}: {sleeps} before {calls}, which brought {events}", self.aim)?;
        let rows = self.awake.rows().into_iter().filter(|(calls, _)| *calls > 0);
        let kept: Vec<String> = rows.map(|(calls, why)| format!("{} {why}", grouped(calls))).collect();
        if kept.is_empty() { Ok(()) } else { write!(out, "; no sleep: {}", kept.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_the_rules_that_kept_awake() {
        let awake = Awake { sparse: 900, left_over: 50, ..Awake::default() };
        let report = Report {
            aim: "every 1ms 500us".to_owned(),
            calls: 1950,
            sleeps: 1000,
            events: 5000,
            awake,
            ..Report::default()
        };
        assert_eq!(
            report.to_string(),
            "pace (measured): engaged, every 1ms 500us: 1,000 sleeps before 1,950 waits, which brought 5,000 events; no \
             sleep: 900 sparse events, 50 events left over"
        );
    }
}
