//! Source lines and instructions of a run's functions, from the files that they came from, as far as those are still
//! what ran.

use super::{Source, Texts};
use crate::load::Report;
use nearmiss_record::model::FunctionRow;
use nearmiss_record::run::{self, RunDir};
use nearmiss_record::symbols::Symbols;
use nearmiss_symbols::Elf;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// A longer file is no source file.
const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// Returns the texts that can be had for these functions.
pub fn texts(run: &RunDir, report: &Report, functions: &[&FunctionRow]) -> Texts {
    let mut texts = Texts::default();
    let builds = builds(run);
    let modules: BTreeSet<&str> = functions.iter().filter(|f| !f.kernel).map(|f| f.module.as_str()).collect();
    for module in modules {
        let build = builds.get(module).map(String::as_str);
        match code_of(module, build, &report.manifest.started) {
            Ok(elf) => instructions(&mut texts, &elf, report, functions, module),
            Err(why) => {
                texts.without_code.insert(module.to_owned(), why);
            }
        }
    }
    for function in functions {
        let built = modified(&function.module);
        let lines = report.model.lines.iter().filter(|line| line.function == function.name && !line.file.is_empty());
        for line in lines {
            if !texts.sources.contains_key(&line.file)
                && let Some(source) = source(&line.file, built)
            {
                texts.sources.insert(line.file.clone(), source);
            }
        }
    }
    texts
}

/// Returns the linker's build ID of each file of the run. A run without symbols has none; its report does not need
/// them.
fn builds(run: &RunDir) -> BTreeMap<String, String> {
    let symbols: Symbols = run.read_json(run::SYMBOLS).unwrap_or_default();
    symbols.data.into_iter().filter_map(|data| Some((data.module, data.build_id?))).collect()
}

/// The file, if it is still the one that ran. Errors: why its code is not shown.
fn code_of(module: &str, build: Option<&str>, started: &str) -> Result<Elf, String> {
    if !module.starts_with('/') {
        return Err(format!("Code of {module} is in no file: addresses alone."));
    }
    let elf = Elf::open(Path::new(module)).ok_or(format!("{module} is not to be read here: addresses alone."))?;
    let changed = match (build, elf.build_id()) {
        (Some(ran), found) => found.as_deref() != Some(ran),
        (None, _) => modified(module).zip(time(started)).is_some_and(|(modified, started)| modified > started),
    };
    match changed {
        true => Err(format!("{module} was built anew since the run: addresses alone.")),
        false => Ok(elf),
    }
}

fn time(text: &str) -> Option<SystemTime> {
    text.parse::<jiff::Timestamp>().ok().map(SystemTime::from)
}

fn modified(path: &str) -> Option<SystemTime> {
    fs::metadata(path).and_then(|about| about.modified()).ok()
}

fn instructions(texts: &mut Texts, elf: &Elf, report: &Report, functions: &[&FunctionRow], module: &str) {
    let base = module.rsplit('/').next().unwrap_or(module);
    let wanted = |name: &str| functions.iter().any(|f| f.module == module && f.name == name);
    for row in report.model.instructions.iter().filter(|row| row.module == module && wanted(&row.function)) {
        if let Some(address) = row.address
            && let Some(text) = elf.instruction(base, address)
        {
            texts.instructions.insert((module.to_owned(), address), text);
        }
    }
}

fn source(path: &str, built: Option<SystemTime>) -> Option<Source> {
    let about = fs::metadata(path).ok().filter(|about| about.is_file() && about.len() <= MAX_SOURCE_BYTES)?;
    let text = fs::read(path).ok()?;
    let is_newer = about.modified().ok().zip(built).is_some_and(|(source, built)| source > built);
    Some(Source { lines: String::from_utf8_lossy(&text).lines().map(str::to_owned).collect(), is_newer })
}
