//! Frames of the language's runtime: their caller is the program, and a user can change its lines.

use nearmiss_record::observed::Frame;

/// Libraries, by the beginning of their file names.
const LIBRARIES: [&str; 8] = ["libc.so", "libc-", "libpthread", "libstdc++", "libc++", "ld-linux", "ld-musl", "[vdso]"];
/// Places of the headers and sources of libraries, inlined into the program: anywhere in a path.
const SOURCES: [&str; 9] = [
    "/usr/include/",
    "/usr/local/include/",
    "/usr/lib/gcc/",
    "/usr/lib/llvm",
    "/rustc/",
    "/rustlib/src/",
    "/parking_lot",
    "/lock_api-",
    "/nptl/",
];
/// Namespaces and crates, by the beginning of a qualified name.
const NAMESPACES: [&str; 9] =
    ["std::", "core::", "alloc::", "__gnu_cxx::", "__cxxabiv1::", "boost::", "parking_lot", "lock_api::", "absl::"];
/// Functions of libc and of the compiler's libraries, by the beginning of their names, as a program linked statically and
/// headers inlined into a program have them.
const FUNCTIONS: [&str; 13] = [
    "pthread_",
    "__pthread",
    "___pthread",
    "lll_",
    "__lll",
    "futex_",
    "__futex",
    "__GI_",
    "__gthread",
    "__new_sem",
    "sem_wait",
    "mtx_lock",
    "syscall",
];

/// Whether the frame is the runtime's own.
pub fn in_runtime(frame: &Frame) -> bool {
    let file = frame.module.rsplit('/').next().unwrap_or(&frame.module);
    let name = qualified(&frame.function);
    LIBRARIES.iter().any(|library| file.starts_with(library))
        || SOURCES.iter().any(|place| frame.line.contains(place))
        || NAMESPACES.iter().chain(&FUNCTIONS).any(|start| name.starts_with(start))
}

/// The name of a demangled function without its return type, which templates have before it: what is left after the last
/// space outside of all brackets, ahead of the parameters.
fn qualified(function: &str) -> &str {
    let (mut depth, mut from) = (0usize, 0);
    for (at, c) in function.char_indices() {
        match c {
            '(' if depth == 0 && !function.get(at..).is_some_and(|rest| rest.starts_with("(anonymous")) => break,
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => from = at + 1,
            _ => {}
        }
    }
    function.get(from..).unwrap_or(function).trim_start_matches(['<', '&', '*'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, module: &str, line: &str) -> Frame {
        Frame { function: function.into(), module: module.into(), line: line.into(), ..Frame::default() }
    }

    #[test]
    fn wrappers_of_every_kind_are_the_runtimes() {
        for function in [
            "std::mutex::lock()",
            "void std::__invoke_impl<void, void (*)()>(std::__invoke_other, void (*&&)())",
            "__gthread_mutex_lock(pthread_mutex_t*)",
            "<std::sync::poison::mutex::Mutex<T>>::lock",
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            "pthread_mutex_lock@plt",
            "___pthread_mutex_lock",
            "lll_mutex_lock_optimized",
            "parking_lot::raw_mutex::RawMutex::lock_slow",
            "__gnu_cxx::__mutex::lock()",
        ] {
            assert!(in_runtime(&frame(function, "/home/me/program", "")), "{function}");
        }
        assert!(in_runtime(&frame("odd", "/usr/lib/x86_64-linux-gnu/libc.so.6", "")));
        assert!(in_runtime(&frame("lock", "/home/me/program", "/usr/include/c++/12/bits/std_mutex.h:100")));
    }

    #[test]
    fn the_users_own_are_not() {
        for function in [
            "work()",
            "std::vector<int> work<int>(std::mutex&)",
            "(anonymous namespace)::work(std::string)",
            "pool::Queue<std::string>::take(std::unique_lock<std::mutex>&)",
            "standard::lock()",
            "take_lock",
        ] {
            assert!(!in_runtime(&frame(function, "/home/me/libcache.so", "/home/me/src/std.cpp:3")), "{function}");
        }
    }
}
