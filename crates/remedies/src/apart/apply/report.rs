use crate::preload::own_malloc;
use nearmiss_analysis::AppliedRecord;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/apart-applied/1`.
pub(super) const SCHEMA: &str = "nearmiss/apart-applied/1";

/// The format of the record.
pub(in crate::apart) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Acts of the remedy on a command: counted by the library inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/apart-applied/1`.
    pub schema: &'static str,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Least size in bytes of a block that is moved.
    pub least_bytes: u64,
    /// Largest.
    pub most_bytes: u64,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Programs with a `malloc` of their own that comes first, so that nothing was moved.
    pub programs_with_own_malloc: u64,
    /// Blocks on lines of their own. A thread that the process's end stops may keep back some sixty.
    pub moved: u64,
    /// Blocks left as they were for lack of memory.
    pub left: u64,
    /// Bytes that whole lines added in all, freed blocks included.
    pub added_bytes: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.least_bytes, self.most_bytes);
        let sizes = if least == most { least.to_string() } else { format!("{least} to {most}") };
        write!(
            out,
            "apart (measured): engaged, {} blocks of {sizes} bytes on lines of their own, {} bytes added",
            self.moved, self.added_bytes
        )?;
        if self.left > 0 {
            write!(out, ", {} left (no memory)", self.left)?;
        }
        own_malloc(out, self.programs_with_own_malloc, self.programs)
    }
}
