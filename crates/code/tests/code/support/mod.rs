//! Assembled functions.
#![allow(clippy::unwrap_used)]

mod blocks;

use nearmiss_code::CodeMap;
use nearmiss_record::units::InsnId;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeMap;
use std::process::Command;

/// A file of assembled functions.
pub struct Assembled {
    vaddr: u64,
    code: Vec<u8>,
    labels: BTreeMap<String, u64>,
}

impl Assembled {
    /// From a source beside the tests.
    pub fn new(source: &str) -> Assembled {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let from = format!("{}/tests/functions/{source}", env!("CARGO_MANIFEST_DIR"));
        let done = Command::new("cc").args(["-nostdlib", "-static", "-no-pie", "-o"]).arg(&program).arg(from).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let file = std::fs::read(&program).unwrap();
        let file = object::File::parse(&*file).unwrap();
        let text = file.section_by_name(".text").unwrap();
        let labels = file.symbols().map(|symbol| (symbol.name().unwrap().to_owned(), symbol.address())).collect();
        Assembled { vaddr: text.address(), code: text.data().unwrap().to_vec(), labels }
    }

    /// The address of a label.
    pub fn address(&self, label: &str) -> u64 {
        self.labels[label]
    }

    /// The id of the instruction behind a label.
    pub fn id(&self, label: &str) -> InsnId {
        blocks::id_at(self.labels[label] - self.vaddr)
    }

    /// A map of all blocks that begin at the text's begin, behind a branch or at a branch's target.
    pub fn map(&self) -> CodeMap {
        let mut map = CodeMap::default();
        self.fill(&mut map);
        map
    }

    /// Adds all blocks to a map.
    pub fn fill(&self, map: &mut CodeMap) {
        blocks::add_all(map, self.vaddr, &self.code);
    }
}
