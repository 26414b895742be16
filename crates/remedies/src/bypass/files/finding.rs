//! From a stream through the page cache to a finding: what it pushed out, and which pages would be kept.

use crate::bypass::NAME;
use crate::command_line::command_line;
use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Suspicion};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Base, Evidence, EvidenceKind, EvidenceLine, Finding, Prediction, Reach};
use nearmiss_record::observed::CachedFile;
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{bytes, percent};
use std::collections::BTreeMap;

/// A stream of files, and what it pushed out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Files of the target.
    pub own: Vec<CachedFile>,
    /// Files of others that lost pages.
    pub lost: Vec<CachedFile>,
    /// Bytes that the target's requests moved to and from storage.
    pub moved_bytes: u64,
    /// Bytes of others' files that were in the page cache before.
    pub others_bytes: u64,
}

impl Stream {
    /// Pages that others lost.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.iter().map(CachedFile::lost).sum()
    }

    /// Pages of the target's files that are left.
    pub fn held_bytes(&self) -> u64 {
        self.own.iter().map(|file| file.after_bytes).sum()
    }

    /// Returns the most of it that was read again: no process read again more than its files lost, nor more than it
    /// read.
    pub fn read_again_bytes(&self) -> Option<u64> {
        let mut by_process: BTreeMap<i32, (u64, u64)> = BTreeMap::new();
        for file in &self.lost {
            let (lost, read) = by_process.entry(file.process).or_default();
            *lost += file.lost();
            *read = file.read_bytes?;
        }
        Some(by_process.values().map(|(lost, read)| lost.min(read)).sum())
    }

    fn share(&self, part: u64) -> f64 {
        part as f64 / self.others_bytes.max(1) as f64
    }

    fn symptom(&self) -> String {
        let most = self.lost.iter().max_by_key(|file| file.lost());
        let of = most.map(|file| format!(", most of them of {} (`{}`)", file.path, file.name)).unwrap_or_default();
        format!(
            "The command's files hold {} of the page cache afterwards, and files of others lost {} of the {} that were \
             cached{of}",
            bytes(self.held_bytes()),
            bytes(self.lost_bytes()),
            bytes(self.others_bytes)
        )
    }

    fn read_again(&self) -> String {
        match self.read_again_bytes() {
            Some(0) => "Nothing of it was read again while the command ran.".to_owned(),
            Some(read) => format!("At most {} of it was read again while the command ran.", bytes(read)),
            None => "Whether it was read again is not known: it takes root to see what others read.".to_owned(),
        }
    }

    /// Lists which pages would be kept: what was cached before, and is not the stream's.
    fn by_file(&self) -> Table {
        let row = |file: &CachedFile| {
            vec![
                Cell::text(&file.path),
                Cell::text(&file.name),
                Cell::Bytes(file.before_bytes.unwrap_or(0)),
                Cell::Bytes(file.after_bytes),
                Cell::Bytes(file.after_bytes + file.lost()),
                file.read_bytes.map_or(Cell::Unknown, Cell::Bytes),
            ]
        };
        let heads = ["file", "process", "cached before", "cached after", "kept with --files", "process read meanwhile"];
        Table {
            title: "files of others in the page cache".to_owned(),
            columns: heads.map(str::to_owned).to_vec(),
            rows: self.lost.iter().map(row).collect(),
        }
    }

    fn sides(&self) -> Table {
        let kept = self.others_bytes - self.lost_bytes().min(self.others_bytes);
        // The cached part of files that the command opened later is unknown, and stays.
        let own_before: Option<u64> = self.own.iter().map(|file| file.before_bytes).sum();
        let row = |way: &str, others: u64, own: Cell| vec![Cell::text(way), Cell::Bytes(others), own];
        Table {
            title: "page cache afterwards".to_owned(),
            columns: ["way", "of others' files", "of the command's files"].map(str::to_owned).to_vec(),
            rows: vec![
                row("as it was", kept, Cell::Bytes(self.held_bytes())),
                row("--files", self.others_bytes, own_before.map_or(Cell::Unknown, Cell::Bytes)),
            ],
        }
    }
}

impl Suspicion for Stream {
    fn most_gain(&self) -> f64 {
        self.share(self.lost_bytes())
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let command = &case.observation()?.manifest().command;
        let line =
            |verb: &str| (!command.is_empty()).then(|| command_line(verb, NAME, &["--files".to_owned()], command));
        let moved = format!("The command moved {} to and from storage.", bytes(self.moved_bytes));
        Ok(Finding {
            remedy: NAME.to_owned(),
            known: EvidenceKind::Measured,
            symptom: self.symptom(),
            cause:
                "Each page that is read or written stays in the page cache, and pushes out what was not used lately."
                    .to_owned(),
            evidence: Evidence {
                lines: vec![EvidenceLine::new("Stream", moved), EvidenceLine::new("Pages", self.read_again())],
                tables: vec![self.by_file()],
                most_gain: self.most_gain(),
            },
            treatment: "The command's regular files leave nothing in the page cache".to_owned(),
            reach: Reach::Outside,
            prediction: self.prediction(),
            unless: vec![
                "something reads the command's files soon: they then come from storage again".to_owned(),
                "others use their pages so often that the kernel keeps them anyway".to_owned(),
                "the pages were lost to somebody else, such as a program that took memory meanwhile".to_owned(),
            ],
            apply: line("apply"),
            verify: line("verify"),
        })
    }

    fn rehearse(&self, _: &Case, _: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        Ok(Rehearsal {
            remedy: NAME.to_owned(),
            subject: format!("files of the command, beside {} of others' files", bytes(self.others_bytes)),
            basis: format!(
                "from what the kernel reported of the files' pages before and after; nothing was dropped to find out; {} of \
                 the others' pages were lost and would be kept",
                percent(self.share(self.lost_bytes()))
            ),
            placements: Vec::new(),
            table: self.sides(),
            more: Vec::new(),
        })
    }
}

impl Stream {
    fn prediction(&self) -> Prediction {
        let most = self.share(self.lost_bytes());
        Prediction {
            gain: most,
            low: self.read_again_bytes().map_or(0.0, |read| self.share(read)),
            high: most,
            of: Base::other("the page cache that others had"),
            approximate: vec![
                "The gain is the pages that others lost meanwhile; the low end is what of them was read again."
                    .to_owned(),
                "Files that nobody had open are not seen.".to_owned(),
            ],
            ..Prediction::default()
        }
    }
}
