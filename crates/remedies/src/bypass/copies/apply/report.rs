use super::{LEFT, LEFT_BYTES, NO_STORES, OVERLAPPING, Options};
use crate::preload::LibraryCounts;
use nearmiss_analysis::AppliedRecord;
use nearmiss_record::words::{bytes, counted};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/bypass-copies-applied/1`.
const SCHEMA: &str = "nearmiss/bypass-copies-applied/1";

/// The format of the record.
pub(in crate::bypass) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Acts of the remedy on a command: counted by the library inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/bypass-copies-applied/1`.
    pub schema: &'static str,
    /// Least size in bytes of a copy that is looked at.
    pub least_bytes: u64,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Programs on a CPU that has no store that goes past the caches.
    pub programs_without_stores: u64,
    /// Reports by site, in the order of the request.
    pub sites: Vec<SiteReport>,
    /// Copies of a site with overlapping source and target: left as they were.
    pub overlapping: u64,
    /// Copies of the least size and more that are no site's.
    pub left: u64,
    /// Bytes of the copies that are no site's.
    pub left_bytes: u64,
}

/// Acts of one site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SiteReport {
    /// Name of the site.
    pub site: String,
    /// Places of the site's call that were found in the programs when they started; later ones are not counted.
    pub places: u64,
    /// Copies of the least size and more.
    pub calls: u64,
    /// Bytes of the copies.
    pub bytes: u64,
    /// Some who called the site's function and are not the caller that the site names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_callers: Vec<String>,
}

impl Report {
    pub(super) fn new(options: &Options, part: &LibraryCounts) -> Self {
        let of_site = |(at, site): (usize, &super::super::Site)| {
            let counter = |what: &str| part.counter(&format!("{what} {at}"));
            SiteReport {
                site: site.to_string(),
                places: counter("places"),
                calls: counter("calls"),
                bytes: counter("bytes"),
                other_callers: part.notes(at as u64),
            }
        };
        Report {
            schema: SCHEMA,
            least_bytes: options.least_bytes,
            programs: part.programs,
            programs_without_stores: part.counter(NO_STORES),
            sites: options.sites.iter().enumerate().map(of_site).collect(),
            overlapping: part.counter(OVERLAPPING),
            left: part.counter(LEFT),
            left_bytes: part.counter(LEFT_BYTES),
        }
    }

    /// Copies that went past the caches.
    pub fn calls(&self) -> u64 {
        let calls: u64 = self.sites.iter().map(|site| site.calls).sum();
        calls.saturating_sub(self.overlapping)
    }
}

impl fmt::Display for SiteReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} of {}", self.site, counted_copies(self.calls), bytes(self.bytes))?;
        match self.other_callers.as_slice() {
            _ if self.calls > 0 => Ok(()),
            [] if self.places == 0 => out.write_str(
                " (no program that loaded the library has such a call; a static program never loads it, and inlined \
                 functions have no calls)",
            ),
            [] => Ok(()),
            callers => write!(out, " (no copy came by this caller; callers seen: {})", in_words(callers)),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = format!("{} of {} left as they were", counted_copies(self.left), bytes(self.left_bytes));
        let least = bytes(self.least_bytes);
        if self.sites.is_empty() {
            return write!(
                out,
                "bypass --copies (measured): changed nothing, because no --site was named; {left} ({least} and more each)"
            );
        }
        write!(out, "bypass --copies (measured): engaged, copies of {least} and more past the caches")?;
        for site in &self.sites {
            write!(out, "; {site}")?;
        }
        if self.overlapping > 0 {
            write!(out, "; {} of these overlapped and went through the caches", counted_copies(self.overlapping))?;
        }
        if self.programs_without_stores > 0 {
            write!(
                out,
                "; {} without stores that go past the caches: nothing was changed there",
                counted(self.programs_without_stores, "program")
            )?;
        }
        write!(out, "; {left}")
    }
}

/// Names of callers; the library could not name some.
fn in_words(callers: &[String]) -> String {
    let name = |caller: &String| if caller == "?" { "one without a name".to_owned() } else { caller.clone() };
    callers.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn counted_copies(copies: u64) -> String {
    if copies == 1 { "1 copy".to_owned() } else { counted(copies, "copie") }
}
