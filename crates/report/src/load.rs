//! Reads what a run holds and refuses what no report can be made of.

use crate::levels::{Level, levels};
use crate::texts::Texts;
use nearmiss_record::finding::Findings;
use nearmiss_record::model::{MAX_LEVELS, ModelRecord};
use nearmiss_record::run::{FINDINGS, MANIFEST, MODEL, Manifest, RunDir, RunError, TRACE};
use std::path::PathBuf;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The run's files cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Recorded, and its process has not modelled it yet.
    #[error("{0}: this run is still being modelled; wait for its end")]
    StillModelled(PathBuf),
    /// Recorded with a trace, but not modelled.
    #[error("{0}: this run was cut off before it was modelled; `nearmiss report {0} -m MACHINE` models its trace")]
    NotModelled(PathBuf),
    /// Recorded without a trace, and not modelled.
    #[error("{0}: no model in this run; record it again with `nearmiss trace -- CMD`")]
    NoModel(PathBuf),
    /// A record that contradicts itself.
    #[error("{path}: {what}: the file is damaged, record the run again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
}

/// All that a report is made of.
#[derive(Clone, Debug)]
pub struct Report {
    /// Manifest of the run.
    pub manifest: Manifest,
    /// Counts of the model.
    pub model: ModelRecord,
    /// The levels of the modelled machine.
    pub levels: Vec<Level>,
    /// Findings of the run on this machine, where somebody has looked for them; none at first.
    pub findings: Option<Findings>,
    /// Source lines and instructions, where somebody has looked for them; empty at first.
    pub texts: Texts,
}

impl Report {
    /// Reads a run.
    pub fn load(run: &RunDir) -> Result<Self, LoadError> {
        let manifest: Manifest = run.read_json(MANIFEST)?;
        if !run.file(MODEL).is_file() {
            return Err(no_model(run));
        }
        let record: ModelRecord = run.read_json(MODEL)?;
        Self::new(manifest, record).map_err(|what| LoadError::Damaged { path: run.file(MODEL), what })
    }

    /// Makes a report from records at hand. Errors: what contradicts what.
    pub fn new(manifest: Manifest, model: ModelRecord) -> Result<Self, String> {
        check(&model)?;
        let levels = levels(&model);
        Ok(Report { manifest, model, levels, findings: None, texts: Texts::default() })
    }
}

/// Returns the findings of a run that was diagnosed.
pub fn findings(run: &RunDir) -> Result<Option<Findings>, RunError> {
    run.file(FINDINGS).is_file().then(|| run.read_json(FINDINGS)).transpose()
}

fn no_model(run: &RunDir) -> LoadError {
    let path = run.path().to_owned();
    if run.is_recorded_now() {
        LoadError::StillModelled(path)
    } else if run.file(TRACE).is_file() {
        LoadError::NotModelled(path)
    } else {
        LoadError::NoModel(path)
    }
}

fn check(model: &ModelRecord) -> Result<(), String> {
    if model.totals.levels.len() > MAX_LEVELS {
        return Err(format!("{} cache levels, at most {MAX_LEVELS} are possible", model.totals.levels.len()));
    }
    for map in &model.sets {
        if map.misses.len() != map.conflict_misses.len() || map.misses.len() != map.lines.len() {
            return Err(format!(
                "the set table of {} has columns of different lengths",
                crate::name::fitted(&map.cache, 20)
            ));
        }
    }
    let offsets = &model.page_offsets;
    if offsets.user.len() != offsets.kernel.len() {
        return Err("the page offset table has columns of different lengths".to_owned());
    }
    if !offsets.user.is_empty() && offsets.bin_bytes == 0 {
        return Err("the page offset table has bins of 0 bytes".to_owned());
    }
    Ok(())
}
