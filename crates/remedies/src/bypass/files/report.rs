use nearmiss_analysis::AppliedRecord;
use nearmiss_record::words::{bytes, counted};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/bypass-files-applied/1`.
pub(super) const SCHEMA: &str = "nearmiss/bypass-files-applied/1";

/// The format of the record.
pub(in crate::bypass) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Acts of the remedy on a command: counted by the library inside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/bypass-files-applied/1`.
    pub schema: &'static str,
    /// The pattern of names; all files where there is none.
    pub only: Option<String>,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Descriptors of files that were taken on.
    pub files: u64,
    /// Files on a file system that takes no `RWF_DONTCACHE`.
    pub refusing_files: u64,
    /// Read and written by requests that the kernel itself keeps out of the page cache.
    pub dontcache_bytes: u64,
    /// Read and written by ordinary requests, with the pages given back by windows.
    pub window_bytes: u64,
    /// Dropped from the page cache by windows: what the program read or wrote, and what the kernel read ahead.
    pub given_back_bytes: u64,
    /// Dropped by nearmiss, of programs that were killed before they gave it back.
    pub after_kill_bytes: u64,
    /// On the program's way, but in the page cache before it came: kept.
    pub kept_bytes: u64,
    /// Calls of `copy_file_range` that became reads and writes.
    pub copies: u64,
    /// Read and written as without the remedy.
    pub left: LeftAlone,
}

/// Bytes that were left alone, by the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftAlone {
    /// `O_DIRECT` passes by the page cache already.
    pub direct_bytes: u64,
    /// `--only` does not name the file.
    pub unnamed_bytes: u64,
    /// The file has no other place than memory (tmpfs, proc).
    pub memory_bytes: u64,
    /// The kernel does not report what of the file is in the page cache.
    pub unseen_bytes: u64,
    /// Another thread was busy with the descriptor.
    pub crowded_bytes: u64,
    /// In the page cache still when the program went on or ended: the disk had not written it.
    pub unwritten_bytes: u64,
    /// In the page cache still when the program left the file: others use it, or write it.
    pub used_bytes: u64,
    /// Left after programs were killed: what others had cached is not known any more, or the disk was too slow.
    pub killed_bytes: u64,
}

impl LeftAlone {
    fn rows(&self) -> Vec<String> {
        let rows = [
            (self.direct_bytes, "by O_DIRECT, which passes by the page cache already"),
            (self.unnamed_bytes, "of files that --only does not name"),
            (self.memory_bytes, "of files that lie in memory anyway"),
            (self.unseen_bytes, "of files of which the kernel does not show what is cached"),
            (self.crowded_bytes, "while another thread was busy with the descriptor"),
            (self.unwritten_bytes, "that the disk had not written yet"),
            (self.used_bytes, "that others use or write"),
            (self.killed_bytes, "of programs that were killed"),
        ];
        let rows = rows.into_iter().filter(|(count, _)| *count > 0);
        rows.map(|(count, why)| format!("{} {why}", bytes(count))).collect()
    }
}

impl Report {
    fn ways(&self) -> String {
        let mut ways = Vec::new();
        if self.dontcache_bytes > 0 {
            ways.push(format!("{} by RWF_DONTCACHE", bytes(self.dontcache_bytes)));
        }
        if self.window_bytes > 0 {
            ways.push(format!(
                "{} by windows, which gave back {}",
                bytes(self.window_bytes),
                bytes(self.given_back_bytes)
            ));
        }
        if ways.is_empty() { "nothing read or written".to_owned() } else { ways.join("; ") }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let only = self.only.as_ref().map(|only| format!(" named {only}")).unwrap_or_default();
        if self.files == 0 {
            write!(
                out,
                "bypass --files (measured): engaged, but the program reads and writes no files{only} that it reaches"
            )?;
        } else {
            let files = counted(self.files, "file");
            write!(out, "bypass --files (measured): engaged, {files}{only}: {}", self.ways())?;
        }
        if self.after_kill_bytes > 0 {
            write!(
                out,
                "\n  gave back {} of programs that were killed before they did it themselves",
                bytes(self.after_kill_bytes)
            )?;
        }
        if self.kept_bytes > 0 {
            write!(out, "\n  kept {}, which were in the page cache before", bytes(self.kept_bytes))?;
        }
        if self.refusing_files > 0 {
            write!(out, "\n  {} on a file system without RWF_DONTCACHE", counted(self.refusing_files, "file"))?;
        }
        match self.left.rows() {
            left if left.is_empty() => Ok(()),
            left => write!(out, "\n  left alone: {}", left.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_ways_and_what_was_left_alone() {
        let report = Report {
            files: 2,
            dontcache_bytes: 3 << 20,
            window_bytes: 5 << 20,
            given_back_bytes: 4 << 20,
            kept_bytes: 1 << 20,
            refusing_files: 1,
            left: LeftAlone { memory_bytes: 4096, ..LeftAlone::default() },
            ..Report::default()
        };
        let lines = [
            "bypass --files (measured): engaged, 2 files: 3 MiB by RWF_DONTCACHE; 5 MiB by windows, which gave back 4 MiB",
            "  kept 1 MiB, which were in the page cache before",
            "  1 file on a file system without RWF_DONTCACHE",
            "  left alone: 4 KiB of files that lie in memory anyway",
        ];
        assert_eq!(report.to_string(), lines.join("\n"));
        let nothing = Report { only: Some("*.tar".to_owned()), ..Report::default() }.to_string();
        assert!(nothing.ends_with("no files named *.tar that it reaches"), "{nothing}");
    }
}
