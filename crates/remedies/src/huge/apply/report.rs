use nearmiss_analysis::AppliedRecord;
use nearmiss_record::words::{bytes, counted};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/huge-applied/1`.
pub(super) const SCHEMA: &str = "nearmiss/huge-applied/1";

/// The format of the record.
pub(in crate::huge) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Bytes of a large page.
pub(super) const LARGE_PAGE: u64 = 2 << 20;

/// Acts of the remedy on a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/huge-applied/1`.
    pub schema: &'static str,
    /// The kernel's setting: `always` or `madvise`.
    pub setting: String,
    /// Memory of the command that lay in large pages, the most at once of each program: `AnonHugePages` of its
    /// `smaps_rollup`.
    pub large_bytes: u64,
    /// Mappings and blocks that large pages were requested for.
    pub requested: u64,
    /// Bytes of these.
    pub requested_bytes: u64,
    /// Requests that the kernel refused.
    pub refused: u64,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Programs with a C library before 2.35: their heap stays in small pages.
    pub old_libc: u64,
}

impl Report {
    /// Number of large pages.
    pub fn large_pages(&self) -> u64 {
        self.large_bytes / LARGE_PAGE
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests =
            counted(self.requested, "mapping and block").replace("mapping and blocks", "mappings and blocks");
        if self.large_pages() == 0 {
            write!(
                out,
                "huge (measured): engaged, but no large page was seen (large pages requested for {requests}): the \
                 program used no 2 MiB in a row, or the kernel found no free block of 2 MiB"
            )?;
        } else {
            let pages = counted(self.large_pages(), "large page");
            write!(out, "huge (measured): engaged, {pages} ({}), requested for {requests}", bytes(self.large_bytes))?;
        }
        if self.refused > 0 {
            write!(out, "; the kernel refused {}", counted(self.refused, "request"))?;
        }
        if self.old_libc > 0 {
            write!(
                out,
                "; {} of {} programs have a C library before 2.35, so that their heap stays in small pages",
                self.old_libc, self.programs
            )?;
        }
        if self.setting == "always" {
            out.write_str("; the kernel gives large pages to all programs anyway (transparent_hugepage is `always`)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_large_pages_names_the_reasons() {
        let report = |large_bytes, refused, setting: &str| {
            let setting = setting.to_owned();
            Report { large_bytes, requested: 2, refused, setting, programs: 1, ..Report::default() }.to_string()
        };
        let text = report(64 << 20, 0, "madvise");
        assert_eq!(text, "huge (measured): engaged, 32 large pages (64 MiB), requested for 2 mappings and blocks");
        let none = report(0, 1, "always");
        assert!(none.contains("no large page was seen") && none.contains("refused 1 request;"), "{none}");
        assert!(none.ends_with("`always`)"), "{none}");
    }
}
