//! Contents of the files that a run's code came from.

use std::collections::BTreeMap;

/// A source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Lines of the file, the first of them number 1.
    pub lines: Vec<String>,
    /// Whether the file was changed after the program was built: its lines may have other numbers now.
    pub is_newer: bool,
}

/// Source lines and instructions as far as they are to be had when a report is made. None of it is a figure.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Sources by path, as in the run.
    pub sources: BTreeMap<String, Source>,
    /// Instructions by module and address.
    pub instructions: BTreeMap<(String, u64), String>,
    /// Why instructions are not to be had, by module.
    pub without_code: BTreeMap<String, String>,
}

impl Texts {
    /// A line of a source file, tabs as four blanks.
    pub(crate) fn line(&self, file: &str, number: u32) -> Option<String> {
        let line = self.sources.get(file)?.lines.get((number as usize).checked_sub(1)?)?;
        Some(crate::name::plain(line.trim_end().replace('\t', "    ").as_str()))
    }

    /// The instruction at an address; what stands there when the file is not to be had.
    pub(crate) fn instruction(&self, module: &str, address: u64) -> String {
        self.instructions
            .get(&(module.to_owned(), address))
            .map_or_else(|| "–".to_owned(), |text| crate::name::plain(text))
    }

    /// Returns the remark on a source file for the reader.
    pub(crate) fn remark(&self, file: &str) -> Option<&'static str> {
        match self.sources.get(file) {
            None => Some("not to be read here"),
            Some(source) if source.is_newer => Some("changed after the program was built: lines may be off"),
            Some(_) => None,
        }
    }
}
