//! Whether a program will load a preloaded library at all: preloading fails open, so it has
//! to be known before.

use nearmiss_analysis::CannotEngage;
use nearmiss_workload::Workload;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadRef, elf};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many `#!` lines are followed, as the kernel does.
const MOST_INTERPRETERS: usize = 5;

/// Texts of a remedy on programs that it cannot reach by a library.
#[derive(Clone, Copy, Debug)]
pub struct Refusals {
    /// Why that matters, behind `it is a Go program: `.
    pub go: &'static str,
    /// Alternative, printed behind `it is statically linked and loads no library; link it dynamically, `.
    pub statically_linked: &'static str,
}

/// Refuses programs that would ignore the library.
pub(super) fn check(workload: &Workload, refusals: &Refusals) -> Result<(), CannotEngage> {
    let mut path = workload.program()?;
    for _ in 0..MOST_INTERPRETERS {
        let seen = match workload.directory() {
            Some(directory) => directory.join(&path),
            None => path.clone(),
        };
        match inspect(&seen, refusals).map_err(|e| CannotEngage::system("read the program", e))? {
            Verdict::Engages => return Ok(()),
            Verdict::Refuses(why) => return Err(CannotEngage::Program { program: path, why }),
            Verdict::Script(interpreter) => path = interpreter,
        }
    }
    Ok(())
}

/// Whether a program, no script, loads libraries that we preload.
pub(crate) fn loads_libraries(program: &Path, refusals: &Refusals) -> std::io::Result<bool> {
    Ok(matches!(inspect(program, refusals)?, Verdict::Engages))
}

enum Verdict {
    Engages,
    Refuses(String),
    Script(PathBuf),
}

fn inspect(path: &Path, refusals: &Refusals) -> std::io::Result<Verdict> {
    let refuse = |why: &str| Ok(Verdict::Refuses(why.to_owned()));
    let mut file = File::open(path)?;
    let mut start = [0u8; 256];
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..])? {
            0 => break,
            n => length += n,
        }
    }
    let start = &start[..length];
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        return Ok(match line.split_whitespace().next() {
            Some(interpreter) => Verdict::Script(interpreter.into()),
            None => Verdict::Script("/bin/sh".into()),
        });
    }
    if !start.starts_with(b"\x7fELF") {
        // `exec` hands it to the shell.
        return Ok(Verdict::Script("/bin/sh".into()));
    }
    if becomes_secure(path, &file)? {
        return refuse(
            "it runs with other privileges than its caller's (setuid, setgid or file capabilities), and the loader then preloads nothing; start it as its owner",
        );
    }
    // SAFETY: a read-only private mapping; a file changed under it can only fail the parse.
    let data = unsafe { memmap2::Mmap::map(&file)? };
    if data.get(4) != Some(&elf::ELFCLASS64.0) {
        return refuse("it is a 32-bit program, and nearmiss's library is a 64-bit one");
    }
    let described = describe(&*data);
    let Some(program) = described else {
        return refuse("its ELF headers cannot be read");
    };
    if program.machine != native_machine() {
        return refuse("it is a program for another kind of processor");
    }
    if program.go {
        return refuse(&format!("it is a Go program: {}", refusals.go));
    }
    match program.loader {
        None => refuse(&format!(
            "it is statically linked and loads no library; link it dynamically, {}",
            refusals.statically_linked
        )),
        Some(loader) if !loader.contains("ld-linux") && !loader.contains("ld64") => Ok(Verdict::Refuses(format!(
            "its loader is {loader}, not the GNU C library's, for which nearmiss's library is built"
        ))),
        Some(_) => Ok(Verdict::Engages),
    }
}

struct Program {
    machine: elf::Machine,
    loader: Option<String>,
    go: bool,
}

fn describe<'data>(data: impl ReadRef<'data>) -> Option<Program> {
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let loader = header
        .program_headers(endian, data)
        .ok()?
        .iter()
        .find_map(|segment| segment.interpreter(endian, data).ok().flatten())
        .map(|name| String::from_utf8_lossy(name).into_owned());
    let go = header.sections(endian, data).is_ok_and(|sections| {
        [&b".go.buildinfo"[..], b".note.go.buildid", b".gopclntab"]
            .iter()
            .any(|name| sections.section_by_name(endian, name).is_some())
    });
    Some(Program { machine: header.e_machine(endian), loader, go })
}

fn native_machine() -> elf::Machine {
    if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 }
}

/// Whether the loader will run in secure mode, in which it ignores LD_PRELOAD.
fn becomes_secure(path: &Path, file: &File) -> std::io::Result<bool> {
    let about = file.metadata()?;
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let setuid = about.mode() & 0o4000 != 0 && about.uid() != uid;
    let setgid = about.mode() & 0o2010 == 0o2010 && about.gid() != gid;
    let mut value = [0u8; 64];
    let capabilities = uid != 0 && rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok();
    Ok(setuid || setgid || capabilities)
}
