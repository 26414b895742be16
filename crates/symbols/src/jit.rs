//! Names of code that a program made at run time, from the file that its language's runtime writes for profilers.
//!
//! `/tmp/perf-PID.map` has a line for each function: its address, its bytes, both in hexadecimal digits, and its name
//! (`tools/perf/Documentation/jit-interface.txt` of Linux). Node writes it with `--perf-basic-prof`, Java with
//! `-XX:+DumpPerfMapAtExit` or `jcmd PID Compiler.perfmap`, Python from 3.12 on with `-X perf`.

use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A longer file is read so far.
const MOST_BYTES: u64 = 256 << 20;
/// Functions beyond are nameless: a short file could have more of them than memory holds.
const MOST_FUNCTIONS: usize = 1 << 20;
/// Bytes of a line: names of Java's methods are long.
const LONGEST_LINE: u64 = 16 << 10;
/// What V8 calls compiled JavaScript, ahead of a colon; its other code has no source.
const JAVASCRIPT: [&str; 5] = ["JS", "LazyCompile", "Function", "Eval", "Script"];

/// A function made at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitFunction {
    /// Name of the function in the source.
    pub name: String,
    /// `file:line`, where the runtime names it; else empty.
    pub line: String,
}

/// The functions of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JitNames {
    /// End and function by start; none overlap.
    functions: BTreeMap<u64, (u64, JitFunction)>,
}

impl JitNames {
    /// The file that names the functions of a process.
    pub fn file(pid: u32) -> PathBuf {
        PathBuf::from(format!("/tmp/perf-{pid}.map"))
    }

    /// Reads such a file; lines that are none are skipped. `None`: it is not there, or is no file.
    pub fn read(path: &Path) -> Option<Self> {
        // Anybody may put something else there.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        JitNames::parse(file).ok()
    }

    /// Reads the text of such a file; lines that are none are skipped.
    pub fn parse(text: impl Read) -> std::io::Result<Self> {
        let mut names = JitNames::default();
        let mut lines = BufReader::new(text.take(MOST_BYTES));
        let mut line = Vec::new();
        while names.functions.len() < MOST_FUNCTIONS
            && lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? > 0
        {
            names.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(names)
    }

    /// Returns the process whose functions a file of this name has.
    pub fn process(name: &str) -> Option<u32> {
        let number = name.strip_prefix("perf-")?.strip_suffix(".map")?;
        number.bytes().all(|digit| digit.is_ascii_digit()).then(|| number.parse().ok())?
    }

    /// Adds a line. Code that lay there before is gone.
    fn add(&mut self, line: &str) {
        let mut fields = line.trim_end().splitn(3, ' ');
        let mut number = || u64::from_str_radix(fields.next()?.trim_start_matches("0x"), 16).ok();
        let (Some(start), Some(bytes @ 1..)) = (number(), number()) else { return };
        let Some(name) = fields.next().map(str::trim).filter(|name| !name.is_empty()) else { return };
        let end = start.saturating_add(bytes);
        let before = self.functions.range(..end).rev().take_while(|(_, (until, _))| *until > start);
        let covered: Vec<u64> = before.map(|(from, _)| *from).collect();
        covered.iter().for_each(|from| drop(self.functions.remove(from)));
        self.functions.insert(start, (end, function(name)));
    }

    /// Returns the function at an address.
    pub fn at(&self, address: u64) -> Option<&JitFunction> {
        let (_, (end, function)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(function)
    }
}

/// Takes a name apart as V8 writes it (`JS:*fib /srv/app.js:3:14`) and Python (`py::fib:/srv/app.py`).
fn function(text: &str) -> JitFunction {
    let of_v8 = || {
        let (_, rest) = text.split_once(':').filter(|(kind, _)| JAVASCRIPT.contains(kind))?;
        // The tier that compiled it.
        let rest = rest.trim_start_matches(['*', '~', '^', '+', '-']);
        let (name, place) = rest.split_once(' ').unwrap_or((rest, ""));
        let line = place.rsplit_once(':').map_or(place, |(line, _column)| line).trim_start_matches("file://");
        let anonymous = || format!("anonymous at {}", line.rsplit('/').next().unwrap_or(line));
        let name = if name.is_empty() { anonymous() } else { name.to_owned() };
        Some((name, line))
    };
    let of_python = || text.strip_prefix("py::")?.rsplit_once(':').map(|(name, file)| (name.to_owned(), file));
    let (name, line) = of_v8().or_else(of_python).unwrap_or_else(|| (text.to_owned(), ""));
    JitFunction { name, line: line.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn named(text: &str) -> JitNames {
        let mut names = JitNames::default();
        text.lines().for_each(|line| names.add(line));
        names
    }

    #[test]
    fn each_runtime_has_names_of_its_own() {
        let parts = |text| {
            let JitFunction { name, line } = function(text);
            (name, line)
        };
        let of = |name: &str, line: &str| (name.to_owned(), line.to_owned());
        assert_eq!(parts("JS:*fib /srv/app.js:3:14"), of("fib", "/srv/app.js:3"));
        assert_eq!(parts("LazyCompile:~ file:///srv/app.js:1:1"), of("anonymous at app.js:1", "/srv/app.js:1"));
        assert_eq!(parts("Builtin:ArrayPrototypeJoin"), of("Builtin:ArrayPrototypeJoin", ""));
        assert_eq!(parts("py::fib:/srv/app.py"), of("fib", "/srv/app.py"));
        assert_eq!(parts("int Main.fib(int)"), of("int Main.fib(int)", ""));
    }

    #[test]
    fn the_latest_code_at_an_address_has_its_name() {
        let names = named("1000 100 a\n1100 100 b\n10f0 20 c\nzz 1 d\n2000\n2000 10 \n0x3000 10 e");
        let at = |address| names.at(address).map(|function| function.name.as_str());
        assert_eq!([at(0x1000), at(0x10f0), at(0x110f), at(0x1110)], [None, Some("c"), Some("c"), None]);
        assert_eq!([at(0x2000), at(0x3000), at(0x300f), at(0x3010)], [None, Some("e"), Some("e"), None]);
    }

    #[test]
    fn a_short_file_with_countless_functions_is_read_so_far() {
        let text: String = (0..MOST_FUNCTIONS + 2).map(|at| format!("{:x} 1 a\n", 2 * at)).collect();
        let names = JitNames::parse(text.as_bytes()).unwrap();
        let last = 2 * (MOST_FUNCTIONS as u64 - 1);
        assert!(names.at(last).is_some() && names.at(last + 2).is_none());
    }

    #[test]
    fn a_file_names_its_process() {
        let of = ["perf-7.map", "perf-.map", "perf-+7.map", "perf-7.map~", "7.map"].map(JitNames::process);
        assert_eq!(of, [Some(7), None, None, None, None]);
    }

    #[test]
    fn what_is_no_such_file_has_no_names() {
        let place = tempfile::tempdir().unwrap();
        let (link, file) = (place.path().join("link"), place.path().join("file"));
        std::fs::write(&file, b"1000 10 a\xff\n\xff\xff\n1010 10").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(JitNames::read(&link).is_none() && JitNames::read(place.path()).is_none());
        assert_eq!(JitNames::read(&file).unwrap().at(0x1001).unwrap().name, "a\u{fffd}");
    }
}
