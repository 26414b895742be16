use crate::preload::own_malloc;
use nearmiss_analysis::AppliedRecord;
use nearmiss_record::words::counted;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/keep-applied/1`.
pub(super) const SCHEMA: &str = "nearmiss/keep-applied/1";

/// The format of the record.
pub(in crate::keep) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Acts of the remedy on a command: counted by the library inside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/keep-applied/1`.
    pub schema: &'static str,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Programs with a malloc that keeps what is freed.
    pub keeping: u64,
    /// Programs with a `malloc` of their own.
    pub programs_with_own_malloc: u64,
    /// Page faults without reading from a disk, of all these programs that ended by themselves.
    pub page_faults: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "keep (measured): engaged, malloc keeps what is freed in {}; {}",
            counted(self.keeping, "program"),
            counted(self.page_faults, "page fault")
        )?;
        own_malloc(out, self.programs_with_own_malloc, self.programs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_another_malloc_are_counted() {
        let report =
            Report { programs: 3, keeping: 2, programs_with_own_malloc: 1, page_faults: 4711, ..Report::default() };
        let text = "keep (measured): engaged, malloc keeps what is freed in 2 programs; 4,711 page faults; 1 of 3 programs \
                    bring their own malloc, and its blocks are left as they are";
        assert_eq!(report.to_string(), text);
    }
}
