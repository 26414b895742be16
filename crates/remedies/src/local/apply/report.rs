use nearmiss_analysis::AppliedRecord;
use nearmiss_record::words::{counted, grouped};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/local-applied/1`.
pub(super) const SCHEMA: &str = "nearmiss/local-applied/1";

/// The format of the record.
pub(in crate::local) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Acts of the remedy on a command; counted by the libraries inside it, or by the follower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/local-applied/1`.
    pub schema: &'static str,
    /// The CPUs that tasks are bound to, in turn; none: tasks run where the kernel puts them.
    pub plan: Vec<usize>,
    /// Tasks that were bound, the first one included.
    pub bound: u64,
    /// The home of all memory.
    pub home_of_all: Option<String>,
    /// Homes that single calls' memory got.
    pub homed: u64,
    /// Bytes of the single calls' memory that got homes.
    pub homed_bytes: u64,
    /// Pages that are where they were to be moved from outside.
    pub moved: u64,
    /// Homes and bindings that the kernel refused.
    pub refused: u64,
    /// Programs with blocks from pools.
    pub pooled: u64,
    /// Programs in which a library was in place; none where no library was needed, or none can be loaded.
    pub programs: u64,
    /// Requested parts that do not reach this program or this machine, one sentence each.
    pub out_of_reach: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut did = Vec::new();
        if !self.plan.is_empty() {
            let plan: Vec<String> = self.plan.iter().map(usize::to_string).collect();
            did.push(format!("{} bound to CPUs {} in turn", counted(self.bound, "task"), plan.join(",")));
        }
        did.extend(self.home_of_all.as_ref().map(|home| format!("all memory {home}")));
        if self.homed > 0 {
            did.push(format!("{} given, of {} bytes in all", counted(self.homed, "home"), grouped(self.homed_bytes)));
        }
        if self.moved > 0 {
            did.push(format!("{} moved from outside", counted(self.moved, "page")));
        }
        if self.pooled > 0 {
            did.push(format!("pools by thread in {} of {} programs", self.pooled, self.programs));
        }
        if self.refused > 0 {
            did.push(format!("{} refused by the kernel", self.refused));
        }
        let did = if did.is_empty() { "nothing to act on".to_owned() } else { did.join(", ") };
        write!(out, "local (measured): engaged, {did}")?;
        self.out_of_reach.iter().try_for_each(|what| write!(out, "\n{what}"))
    }
}
