//! Calls by which a program allocates memory, as remedies name them.

use super::names::Names;
use nearmiss_record::maps::MapLog;
use nearmiss_record::symbols::{ModuleData, Symbols};
use rustc_hash::FxHashMap;
use std::fmt;

/// Site of an allocation: a call of an allocator, or of `mmap`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// Path of the file that contains the call.
    pub module: String,
    /// The call's address, as the file was linked.
    pub address: u64,
}

/// `program+0x11d9`.
impl fmt::Display for Site {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.module.rsplit('/').next().unwrap_or(&self.module);
        write!(out, "{name}+{:#x}", self.address)
    }
}

/// Finds the sites of calling contexts when the run is over.
pub(super) struct Sites<'a> {
    names: &'a Names<'a>,
    log: &'a MapLog,
    files: FxHashMap<&'a str, &'a ModuleData>,
}

impl<'a> Sites<'a> {
    pub fn new(names: &'a Names<'a>, log: &'a MapLog, symbols: &'a Symbols) -> Self {
        Sites { names, log, files: symbols.data.iter().map(|data| (data.module.as_str(), data)).collect() }
    }

    /// Returns the program's call that a calling context allocated memory by.
    pub fn of(&self, context: u32) -> Option<Site> {
        let call = *self.names.allocation_calls(context).last()?;
        let insn = self.names.insns.get(call as usize)?;
        let place = self.log.place(call, insn).filter(|place| place.is_file)?;
        let address = self.files.get(place.path)?.linked_address(place.file_offset)?;
        Some(Site { module: place.path.to_owned(), address })
    }
}
