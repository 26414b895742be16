use crate::contract::Detect;

/// How a remedy is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// It lives in the command's processes only, and ends with them.
    NothingPersists,
}

/// A remedy by its name and what can be said of it without a run.
#[derive(Debug)]
pub struct Remedy {
    /// As given on the command line.
    pub name: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// Looks for what it may help with in a run.
    pub detect: Detect,
    /// How it is taken back.
    pub undo: Undo,
}

/// Every remedy: one line each.
pub const REMEDIES: &[Remedy] = &[crate::color::REMEDY];

/// The remedy of this name.
pub fn by_name(name: &str) -> Option<&'static Remedy> {
    REMEDIES.iter().find(|remedy| remedy.name == name)
}
