//! Names of Go's functions: `sync/atomic.(*Int64).Add` is the package's import path, a dot, and the name in it.

/// First elements of the import paths of Go's own packages, as of Go 1.26. A module's path begins with a domain, or
/// with a name of its author's choice.
const FIRST_ELEMENTS: [&str; 50] = [
    "archive",
    "arena",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "vendor",
    "weak",
];
/// Words behind the dot in names that GCC and Clang give to parts and copies of a function: `sort.part.0`.
const COMPILER_WORDS: [&str; 7] = ["part", "constprop", "isra", "cold", "lto_priv", "llvm", "localalias"];

/// Whether `function` belongs to Go's own packages, its runtime included.
pub fn is_of_library(function: &str) -> bool {
    package(function).is_some_and(|package| {
        let first = package.split('/').next().unwrap_or(package);
        FIRST_ELEMENTS.binary_search(&first).is_ok()
    })
}

/// The import path in front of a function's name; `None` for a name that is no Go function's.
fn package(function: &str) -> Option<&str> {
    // Types in brackets have packages of their own.
    let path = function.split(['[', '(']).next()?;
    let name_at = path.rfind('/').map_or(0, |slash| slash + 1);
    let (last, name) = path[name_at..].split_once('.')?;
    let word = name.split('.').next().unwrap_or(name);
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let package = &path[..name_at + last.len()];
    (package.chars().all(is_path) && !COMPILER_WORDS.contains(&word)).then_some(package)
}

#[cfg(test)]
mod tests {
    use super::is_of_library;

    #[test]
    fn packages_of_the_library_are_separated_from_the_programs_own() {
        for name in [
            "runtime.mallocgc",
            "runtime.gogo.abi0",
            "sync/atomic.(*Int64).Add",
            "sync/atomic.(*Pointer[go.shape.struct { main.x int }]).Load",
            "slices.SortFunc[go.shape.[]example.com/a.T,go.shape.int]",
            "internal/runtime/maps.(*Map).PutSlot",
            "vendor/golang.org/x/net/http/httpguts.ValidHeaderFieldName",
        ] {
            assert!(is_of_library(name), "{name}");
        }
        for name in [
            "main.main.func1",
            "main.(*job).encode",
            "example.com/sync.(*Pool).Get",
            "terrain/runtime.Grow",
            "terrain.Sort[go.shape.[]sync.Mutex]",
        ] {
            assert!(!is_of_library(name), "{name}");
        }
    }

    #[test]
    fn other_languages_have_no_packages() {
        for name in
            ["sort.part.0", "log.constprop.3", "time", "std::sync::Mutex<T>::lock", "<core::fmt::X as y>.llvm.7"]
        {
            assert!(!is_of_library(name), "{name}");
        }
    }

    #[test]
    fn first_elements_are_in_order() {
        assert!(super::FIRST_ELEMENTS.is_sorted());
    }
}
