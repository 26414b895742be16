//! Source lines and inlined functions, from debug information in a file or beside it.

use super::demangle::demangle;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use nearmiss_record::go;
use std::path::Path;

/// Debug information of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourcePlace {
    /// The function that was compiled, not one inlined into it.
    pub function: Option<String>,
    /// The innermost inlined function.
    pub inlined: Option<String>,
    /// File of the innermost.
    pub file: Option<String>,
    /// Line of the innermost.
    pub line: u32,
    /// File and line of the innermost frame outside the language's library, where any frame is of that library.
    pub inlined_at: Option<(String, u32)>,
}

/// Directories of the libraries that compilers inline: C++ (GCC, Clang), Rust, and the intrinsics of both C compilers.
/// Go's lies wherever its user put it, and its functions have their packages in their names.
/// What Rust's library depends on has a directory of its own.
const LIBRARIES: [&str; 8] =
    ["/include/c++/", "/c++/v1/", "/rustc/", "/rustlib/src/", "/rust/deps/", "/bits/", "/lib/gcc/", "/lib/clang/"];

/// Finds source lines of many files.
pub(super) struct Lines {
    symbolizer: Symbolizer,
}

impl Lines {
    pub fn new() -> Self {
        // Names are demangled here, so that both sources of names agree.
        let builder = Symbolizer::builder().enable_demangling(false).enable_auto_reload(false);
        Lines { symbolizer: builder.build() }
    }

    /// One answer for each linked address of the file at `path`; none where there is no debug information.
    pub fn places(&self, path: &Path, addresses: &[u64]) -> Vec<SourcePlace> {
        let source = Source::Elf(Elf::new(path));
        match self.symbolizer.symbolize(&source, Input::VirtOffset(addresses)) {
            Ok(symbols) => symbols.into_iter().map(place).collect(),
            // Debug information that cannot be read is as good as none: names come from the symbol tables.
            Err(_) => vec![SourcePlace::default(); addresses.len()],
        }
    }
}

fn place(symbol: Symbolized<'_>) -> SourcePlace {
    let Some(symbol) = symbol.into_sym() else { return SourcePlace::default() };
    let innermost = symbol.inlined.last();
    let code = innermost.map_or(symbol.code_info.as_deref(), |inlined| inlined.code_info.as_ref());
    let inlined = symbol.inlined.iter().rev().map(|inlined| (inlined.name.as_ref(), inlined.code_info.as_ref()));
    let mut frames = inlined.chain([(symbol.name.as_ref(), symbol.code_info.as_deref())]);
    let any_of_library = frames.clone().any(is_of_library);
    let own = frames.find(|frame| any_of_library && !is_of_library(*frame)).and_then(|(_, code)| code);
    SourcePlace {
        function: Some(demangle(&symbol.name)),
        inlined: innermost.map(|inlined| demangle(&inlined.name)),
        file: code.map(CodeInfo::to_path).map(|path| path.to_string_lossy().into_owned()),
        line: code.and_then(|c| c.line).unwrap_or(0),
        inlined_at: own.and_then(|code| Some((code.to_path().to_string_lossy().into_owned(), code.line?))),
    }
}

fn is_of_library((function, code): (&str, Option<&CodeInfo<'_>>)) -> bool {
    let Some(code) = code else { return false };
    let path = code.to_path();
    let path = path.to_string_lossy();
    go::is_of_library(function) || LIBRARIES.iter().any(|library| path.contains(library))
}
