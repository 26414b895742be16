//! The consumer's part in opening and closing the window of a running command.

use super::ring::Ring;
use super::window::{Length, Start, Window};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::maps::{Decoder, Event, Mapping};
use nearmiss_record::reference::{Control, Kind, Record};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Opens and closes the window when it is due.
pub(super) struct Watch<'a> {
    window: &'a Window,
    began: Option<Instant>,
    opened: Option<Instant>,
    symbol: Option<Search<'a>>,
}

impl<'a> Watch<'a> {
    pub fn new(window: &'a Window) -> Self {
        let symbol = match &window.from {
            Start::Symbol { name, module } => Some(Search::new(name, module.as_deref())),
            _ => None,
        };
        Watch { window, began: None, opened: None, symbol }
    }

    /// Does what is due now.
    pub fn look(&mut self, ring: &Ring) {
        let Some(began) = self.began else { return };
        if self.opened.is_none() && ring.opened() {
            self.opened = Some(Instant::now());
        }
        match (self.opened, &self.window.from, self.window.length) {
            (None, Start::Time(after) | Start::Followed(after), _) if began.elapsed() >= *after => ring.start(),
            (Some(opened), _, Some(Length::Time(length))) if opened.elapsed() >= length => ring.stop(),
            _ => {}
        }
    }

    /// Takes a chunk. Returns the address and first bytes of the function that opens the window, once they are known;
    /// pass them to the ring before the chunk is given back.
    pub fn chunk(&mut self, head: &ChunkHeader, records: &[Record]) -> Option<(u64, [u8; 8])> {
        self.began.get_or_insert_with(Instant::now);
        let found = self.symbol.as_mut()?.chunk(head, records)?;
        self.symbol = None;
        Some(found)
    }

    /// Returns when the window opened, and the command began.
    pub fn times(&self) -> (Option<Instant>, Option<Instant>) {
        (self.opened, self.began)
    }

    /// Returns why it never opened.
    pub fn never(&self) -> String {
        let why = match &self.window.from {
            Start::Time(_) | Start::Followed(_) => "the command ended before",
            Start::Symbol { .. } if self.symbol.is_some() => "no program or library that the command ran defines it",
            Start::Symbol { .. } => "it was never executed",
            _ => "it was never reached",
        };
        format!("{}: {why}", self.window.from)
    }
}

/// Looks for a function in the files that the command maps.
struct Search<'a> {
    name: &'a str,
    module: Option<&'a str>,
    rings: HashMap<u32, Decoder>,
    known: HashSet<(PathBuf, u64)>,
}

impl<'a> Search<'a> {
    fn new(name: &'a str, module: Option<&'a str>) -> Self {
        Search { name, module, rings: HashMap::new(), known: HashSet::new() }
    }

    fn chunk(&mut self, head: &ChunkHeader, records: &[Record]) -> Option<(u64, [u8; 8])> {
        let mut mapped = Vec::new();
        let mut rest = records;
        while let Some((record, behind)) = rest.split_first() {
            let payload = match record.kind() {
                Some(Kind::Control) => record.payload_records().unwrap_or(0).min(behind.len()),
                _ => 0,
            };
            let (payload, behind) = behind.split_at(payload);
            rest = behind;
            if record.kind() == Some(Kind::Control)
                && let Ok(Control::Maps(bytes)) = Control::decode(*record, payload)
            {
                // Bytes that are no perf ring's are reported by whoever models them.
                let _ = self.rings.entry(head.vcpu).or_default().feed(bytes, |event| {
                    if let Event::Map { mapping, .. } = event
                        && mapping.executable
                        && mapping.is_file()
                    {
                        mapped.push(mapping);
                    }
                });
            }
        }
        mapped.iter().find_map(|mapping| self.within(mapping))
    }

    fn within(&mut self, mapping: &Mapping) -> Option<(u64, [u8; 8])> {
        let path = Path::new(&mapping.path);
        if self.module.is_some_and(|module| path.file_name().is_none_or(|name| name != module)) {
            return None;
        }
        if !self.known.insert((path.to_owned(), mapping.file_offset)) {
            return None;
        }
        let entry = nearmiss_symbols::entry(path, self.name)?;
        let into = entry.file_offset.checked_sub(mapping.file_offset)?;
        (into < mapping.end - mapping.start).then_some((mapping.start + into, entry.code))
    }
}
