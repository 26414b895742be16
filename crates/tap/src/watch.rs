//! The consumer's part in opening and closing the window of a running command.

use super::ring::Ring;
use super::window::{Length, Start, Window};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::maps::{Decoder, Event, Mapping};
use nearmiss_record::reference::{Control, Kind, Record};
use nearmiss_symbols::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Address of a function in a process, and the first bytes of its code.
type Placed = (u64, [u8; 8]);

/// Opens and closes the window when it is due.
pub(super) struct Watch<'a> {
    window: &'a Window,
    began: Option<Instant>,
    opened: Option<Instant>,
    mapped: Mapped,
    symbol: Option<Search<'a>>,
    allocators: Option<Allocators>,
}

impl<'a> Watch<'a> {
    /// `has_heap`: the objects that the command allocates are recorded.
    pub fn new(window: &'a Window, has_heap: bool) -> Self {
        let symbol = match &window.from {
            Start::Symbol { name, module } => Some(Search { name, module: module.as_deref(), known: HashSet::new() }),
            _ => None,
        };
        let allocators = has_heap.then(Allocators::default);
        Watch { window, began: None, opened: None, mapped: Mapped::default(), symbol, allocators }
    }

    /// Does what is due now.
    pub fn look(&mut self, ring: &Ring) {
        let Some(began) = self.began else { return };
        if self.opened.is_none() && ring.opened() {
            self.opened = Some(Instant::now());
        }
        match (self.opened, &self.window.from, self.window.length) {
            (None, Start::Time(after), _) if began.elapsed() >= *after => ring.start(),
            (Some(opened), _, Some(Length::Time(length))) if opened.elapsed() >= length => ring.stop(),
            _ => {}
        }
    }

    /// Takes a chunk. The functions that it shows must be passed on before the chunk is given back.
    pub fn chunk(&mut self, head: &ChunkHeader, records: &[Record]) -> Found {
        self.began.get_or_insert_with(Instant::now);
        let mut found = Found::default();
        if self.symbol.is_none() && self.allocators.is_none() {
            return found;
        }
        for mapping in self.mapped.by(head, records) {
            if let Some(search) = &mut self.symbol {
                found.opens = search.within(&mapping);
                self.symbol.take_if(|_| found.opens.is_some());
            }
            found.allocators.extend(self.allocators.as_mut().and_then(|allocators| allocators.within(&mapping)));
        }
        found
    }

    /// Returns when the window opened, and the command began.
    pub fn times(&self) -> (Option<Instant>, Option<Instant>) {
        (self.opened, self.began)
    }

    /// Returns why it never opened.
    pub fn never(&self) -> String {
        let why = match &self.window.from {
            Start::Time(_) => "the command ended before",
            Start::Symbol { .. } if self.symbol.is_some() => "no program or library that the command ran defines it",
            Start::Symbol { .. } => "it was never executed",
            _ => "it was never reached",
        };
        format!("{}: {why}", self.window.from)
    }
}

/// Functions that the plugin waits for.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Opens the window.
    opens: Option<Placed>,
    /// Give out memory, with their numbers from 0 on.
    allocators: Vec<(usize, Placed)>,
}

impl Found {
    /// Hands them to the plugin.
    pub fn pass_to(&self, ring: &Ring) {
        if let Some((address, code)) = self.opens {
            ring.opens_at(address, code);
        }
        for (number, (address, code)) in &self.allocators {
            ring.allocates_at(*number, *address, *code);
        }
    }
}

/// Follows the code that processes map.
#[derive(Default)]
struct Mapped {
    rings: HashMap<u32, Decoder>,
}

impl Mapped {
    /// Files with code that were mapped in a chunk.
    fn by(&mut self, head: &ChunkHeader, records: &[Record]) -> Vec<Mapping> {
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
        mapped
    }
}

/// Place of a function of a mapped file, if the mapping has it.
fn placed(mapping: &Mapping, entry: Entry) -> Option<Placed> {
    let into = entry.file_offset.checked_sub(mapping.file_offset)?;
    (into < mapping.end - mapping.start).then_some((mapping.start + into, entry.code))
}

/// Looks for a function in the files that the command maps.
struct Search<'a> {
    name: &'a str,
    module: Option<&'a str>,
    known: HashSet<(PathBuf, u64)>,
}

impl Search<'_> {
    fn within(&mut self, mapping: &Mapping) -> Option<Placed> {
        let path = Path::new(&mapping.path);
        if self.module.is_some_and(|module| path.file_name().is_none_or(|name| name != module)) {
            return None;
        }
        if !self.known.insert((path.to_owned(), mapping.file_offset)) {
            return None;
        }
        placed(mapping, nearmiss_symbols::entry(path, self.name)?)
    }
}

/// Looks for the functions with which runtimes of languages give out memory.
#[derive(Default)]
struct Allocators {
    /// By file; `None` where it has none.
    files: HashMap<String, Option<Entry>>,
    found: Vec<Placed>,
}

impl Allocators {
    /// The one in `mapping`, if it is new, and its number.
    fn within(&mut self, mapping: &Mapping) -> Option<(usize, Placed)> {
        let look = || nearmiss_symbols::managed_allocator(Path::new(&mapping.path));
        let entry = (*self.files.entry(mapping.path.clone()).or_insert_with(look))?;
        let placed = placed(mapping, entry)?;
        if self.found.contains(&placed) {
            return None;
        }
        self.found.push(placed);
        Some((self.found.len() - 1, placed))
    }
}
