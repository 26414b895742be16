//! Names for a run's instructions, resolved once at the end of recording while the files are those that ran.

use serde::{Deserialize, Serialize};

/// `symbols.json`: names by instruction id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbols {
    /// `nearmiss/symbols/1`.
    pub schema: String,
    /// Modules: program and library paths, `[kernel]`, kernel modules, `[jit]`, `[unknown]`.
    pub modules: Vec<String>,
    /// Functions; index 0 is the unknown function.
    pub functions: Vec<Function>,
    /// Source files; index 0 is the empty name.
    pub files: Vec<String>,
    /// By instruction id: function (index into `functions`), file (index into `files`), line (0: unknown).
    pub insns: Vec<(u32, u32, u32)>,
}

/// `nearmiss/symbols/1`.
pub const SCHEMA: &str = "nearmiss/symbols/1";

/// A function as the report names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Demangled name; for stripped code `module+0x1234` (the nearest known point below).
    pub name: String,
    /// Index into [`Symbols::modules`].
    pub module: u32,
    /// Kernel code.
    pub kernel: bool,
    /// Name of the innermost inlined function at most of its instructions, when it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined: Option<String>,
}
