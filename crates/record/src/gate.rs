//! The verdict of `nearmiss gate`: each figure of two sides, its limit, its ruling, and the causes of the difference.
//!
//! All figures are *modelled*, of the command's tasks alone. Less is better of each.

use crate::model::MissClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `nearmiss/gate/1`.
pub const SCHEMA: &str = "nearmiss/gate/1";

crate::schema::is_record!(GateRecord);

/// The whole record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateRecord {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of nearmiss.
    pub nearmiss: String,
    /// Recorder of the new side.
    pub recorder: Recorder,
    /// Side that is compared with.
    pub old: GatedSide,
    /// Side that has to be no worse.
    pub new: GatedSide,
    /// Confidence of the intervals: 0.999.
    pub confidence: f64,
    /// Whether no figure is beyond its limit.
    pub passed: bool,
    /// Rulings by figure.
    pub figures: Vec<JudgedFigure>,
    /// Facts a reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// Machine, kernel and emulator of recordings: figures are comparable where all of them are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recorder {
    /// The machine modelled.
    pub machine: String,
    /// CPUs of the guest.
    pub cpus: u32,
    /// Release of the guest's kernel.
    pub kernel: String,
    /// The emulator and its version.
    pub emulator: String,
}

/// One of the two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatedSide {
    /// Command line in a shell's syntax.
    pub command: String,
    /// Number of the side's recordings.
    pub recordings: usize,
}

/// Largest allowed increase of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// A share of the old figure.
    Share(f64),
    /// So many events.
    Count(u64),
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // Without the digits that binary fractions have: 0.5%, 2%.
            Limit::Share(share) => write!(f, "{}%", (share * 1e8).round() / 1e6),
            Limit::Count(count) => write!(f, "{count}"),
        }
    }
}

/// Ruling on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// Every recording of both sides counted the same, or the difference is inside the noise.
    NoDifference,
    /// Certainly less.
    Better,
    /// Certainly more, and not certainly beyond the limit.
    Within,
    /// Certainly more than the limit allows.
    Beyond,
    /// More than the limit allows on the average, and not certainly so after all recordings.
    Unclear,
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedFigure {
    /// As `--max-worse` takes it: `user.instructions`, `kernel.l2`, `syscalls.read`.
    pub name: String,
    /// Mean of the old recordings.
    pub old: f64,
    /// Mean of the new recordings.
    pub new: f64,
    /// New less old.
    pub difference: f64,
    /// Half of the width of the difference's interval.
    pub noise: f64,
    /// The limit that applies.
    pub limit: Limit,
    /// The verdict.
    pub ruling: Ruling,
    /// Causes of a difference beyond the limit, largest first.
    pub causes: Vec<Cause>,
}

impl JudgedFigure {
    /// The difference as a share of the old figure, where there is one.
    pub fn change(&self) -> Option<f64> {
        (self.old > 0.0).then(|| self.difference / self.old)
    }

    /// The noise as a share of the old figure, where there is one.
    pub fn noise_share(&self) -> Option<f64> {
        (self.old > 0.0).then(|| self.noise / self.old)
    }
}

/// Kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// A function, what it did itself.
    Function,
    /// A data object, by user and kernel mode together.
    Object,
    /// A system call.
    SystemCall,
}

/// A part of a difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// Kind of the part.
    pub kind: PartKind,
    /// Name of the part.
    pub name: String,
    /// Module of the part, or the kind of object.
    pub module: String,
    /// Source file of the line that counts most on the new side; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Number of the line that counts most on the new side; 0 where it is not known.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub line: u32,
    /// The function that calls this one most on the new side; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// Mean of the old recordings.
    pub old: u64,
    /// Mean of the new recordings.
    pub new: u64,
    /// Class of misses that grew most, and by how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<(MissClass, i64)>,
    /// Entries of the function on both sides; zeros where that is not known.
    pub calls: (u64, u64),
}

impl Cause {
    /// New less old.
    pub fn difference(&self) -> i64 {
        self.new as i64 - self.old as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_reads_as_it_was_typed() {
        let limits = [Limit::Share(0.005), Limit::Share(0.02), Limit::Share(0.0), Limit::Count(3)];
        assert_eq!(limits.map(|limit| limit.to_string()), ["0.5%", "2%", "0%", "3"]);
    }
}
