//! Every copy past the caches, by the C library's own threshold: `glibc.cpu.x86_non_temporal_threshold`.

use nearmiss_analysis::{Acts, Applied, AppliedRecord, CannotEngage, Engaged, Engagement, NotEngaged};
use nearmiss_record::words::bytes;
use nearmiss_workload::{Stdio, Workload};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::io::{Read, Seek};

const VARIABLE: &str = "GLIBC_TUNABLES";
const TUNABLE: &str = "glibc.cpu.x86_non_temporal_threshold";
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// `nearmiss/bypass-every-copy-applied/1`.
const SCHEMA: &str = "nearmiss/bypass-every-copy-applied/1";

/// The format of the record.
pub(in crate::bypass) const RECORD: AppliedRecord = AppliedRecord::of::<EveryCopyReport>(SCHEMA);

/// What the C library was set to; it counts nothing.
#[derive(Serialize, JsonSchema)]
struct EveryCopyReport {
    /// `nearmiss/bypass-every-copy-applied/1`.
    schema: &'static str,
    /// Least size in bytes of a copy past the caches.
    least_bytes: u64,
}

impl fmt::Display for EveryCopyReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = bytes(self.least_bytes);
        write!(out, "bypass --copies: the C library copies {least} and more past the caches; it counts nothing")
    }
}

/// The tunable in place. Nothing of it persists.
struct Threshold {
    least_bytes: u64,
}

/// Puts a command under the threshold; refuses a size that this C library would silently ignore.
pub fn engage(workload: Workload, least_bytes: u64) -> Result<Applied, CannotEngage> {
    let before = workload.variable(VARIABLE).map(|value| value.to_string_lossy().into_owned()).unwrap_or_default();
    let tunables = with_threshold(&before, least_bytes);
    let listed = list(&tunables)?;
    check(&listed, least_bytes).map_err(CannotEngage::Parameters)?;
    Ok(Applied { workload: workload.env(VARIABLE, tunables), engagement: Box::new(Threshold { least_bytes }) })
}

/// Returns the earlier setting with this threshold in place of another.
fn with_threshold(before: &str, least_bytes: u64) -> String {
    let others = before.split(':').filter(|entry| !entry.is_empty() && !entry.starts_with(TUNABLE));
    others.map(str::to_owned).chain([format!("{TUNABLE}={least_bytes}")]).collect::<Vec<_>>().join(":")
}

/// Returns the loader's list of the tunables.
fn list(tunables: &str) -> Result<String, CannotEngage> {
    let failed = |error: std::io::Error| CannotEngage::system("keep the loader's list", error);
    let mut output = tempfile::tempfile().map_err(failed)?;
    let quiet = Workload::new([LOADER, "--list-tunables"]).env(VARIABLE, tunables);
    let quiet = quiet.stdin(Stdio::Null).stdout(output.try_clone().map_err(failed)?).stderr(Stdio::Null);
    quiet.launch_suspended()?.resume()?.wait()?;
    output.rewind().map_err(failed)?;
    let mut text = String::new();
    output.read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// Whether the loader took the threshold: `NAME: 0x10000 (min: 0x4040, max: 0x…)`.
fn check(listed: &str, least_bytes: u64) -> Result<(), String> {
    let unknown = || {
        format!("--every-copy: this C library does not list {TUNABLE} (`{LOADER} --list-tunables`); name sites instead")
    };
    let line = listed.lines().find_map(|line| line.strip_prefix(TUNABLE)).ok_or_else(unknown)?;
    let mut numbers = line.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(|word| word.strip_prefix("0x"));
    let mut next = || numbers.next().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let (taken, least, most) = (next(), next(), next());
    if taken == Some(least_bytes) {
        return Ok(());
    }
    let (least, most) = least.zip(most).ok_or_else(unknown)?;
    Err(format!("--every-copy --min {least_bytes}: this C library takes {least} to {most} bytes, and ignores all else"))
}

impl Engagement for Threshold {
    fn confirm(&mut self, _: i32) -> Result<Engaged, NotEngaged> {
        let report = EveryCopyReport { schema: SCHEMA, least_bytes: self.least_bytes };
        Ok(Engaged::reported(&report, Acts::Uncounted))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn other_tunables_stay() {
        let set = |before| with_threshold(before, 65_536);
        assert_eq!(set(""), "glibc.cpu.x86_non_temporal_threshold=65536");
        let both = "glibc.malloc.check=1:glibc.cpu.x86_non_temporal_threshold=65536";
        assert_eq!(set("glibc.malloc.check=1:glibc.cpu.x86_non_temporal_threshold=1"), both);
    }

    #[test]
    fn a_threshold_that_the_loader_ignores_is_refused() {
        let line =
            |taken| format!("glibc.a: 0x1 (min: 0x0, max: 0x1)\n{TUNABLE}: {taken} (min: 0x4040, max: 0xfff0000)\n");
        assert_eq!(check(&line("0x10000"), 65_536), Ok(()));
        let refused = check(&line("0xc0000"), 4096).unwrap_err();
        assert_eq!(
            refused,
            "--every-copy --min 4096: this C library takes 16448 to 268369920 bytes, and ignores all else"
        );
        assert!(check("", 65_536).unwrap_err().contains("does not list"));
    }
}
