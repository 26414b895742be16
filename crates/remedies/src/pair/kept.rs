//! The table of pairs as a rehearsal leaves it in a run's directory, for `apply` to take up in a later run.

use super::level::SharedLevel;
use nearmiss_analysis::{CannotEngage, CaseError};
use nearmiss_machine::describe::Domains;
use nearmiss_pairing::PairTable;
use nearmiss_record::machine::Machine;
use nearmiss_record::run::RunDir;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// File of the table in a run's directory.
pub const FILE: &str = "pairs.json";
/// `nearmiss/pairs/1`.
pub const SCHEMA: &str = "nearmiss/pairs/1";
/// A file with more tasks was not written by us.
const MOST_TASKS: usize = 4096;

/// Tasks, and what each does beside each other one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptPairs {
    /// `nearmiss/pairs/1`.
    pub schema: String,
    /// Machine and level that the tasks of a pair shared; a table from elsewhere may leave it out.
    #[serde(default)]
    pub shared: Option<KeptShared>,
    /// The rehearsal found no grouping that is certain to save anything.
    #[serde(default)]
    pub nothing_proposed: bool,
    /// The tasks of the table, by their number in it.
    pub tasks: Vec<KeptTask>,
    /// Observed pairs, each once each way.
    pub pairs: Vec<KeptPair>,
}

/// Machine and level that tasks shared when they were replayed beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptShared {
    /// The machine.
    pub machine: String,
    /// The innermost thing that two of its CPUs share.
    pub level: SharedLevel,
}

impl KeptShared {
    /// None where the machine's CPUs share what no level of a kernel's topology stands for.
    pub(super) fn of(machine: &Machine, domains: &Domains) -> Option<Self> {
        let level = match domains.level {
            _ if domains.cpus_each <= machine.topology.threads_per_core => SharedLevel::Smt,
            2 => SharedLevel::L2,
            3 => SharedLevel::L3,
            _ => return None,
        };
        Some(KeptShared { machine: machine.name.clone(), level })
    }
}

/// A task of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptTask {
    /// How many tasks of the command began before this one: 0 is the command's first process. So it is known in a later
    /// run.
    pub order: usize,
    /// Name of the task, for people.
    pub name: String,
    /// How much the task matters, such as its cycles alone.
    pub weight: f64,
}

/// One task beside one other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptPair {
    /// Task with this time.
    pub task: usize,
    /// Task that was beside.
    pub beside: usize,
    /// Times as long as alone, a figure a placement of pages.
    pub of_alone: Vec<f64>,
}

impl KeptPair {
    fn check(&self, tasks: usize) -> Result<(), String> {
        let KeptPair { task, beside, of_alone } = self;
        if *task >= tasks || *beside >= tasks || task == beside {
            return Err(format!("names tasks {task} and {beside}, and has {tasks}"));
        }
        match of_alone.iter().find(|of_alone| !(of_alone.is_finite() && **of_alone > 0.0)) {
            Some(wrong) => Err(format!("claims that task {task} takes {wrong} times as long beside {beside}")),
            None => Ok(()),
        }
    }
}

impl KeptPairs {
    /// Writes the file.
    pub(super) fn write(&self, run: &RunDir) -> Result<(), CaseError> {
        Ok(run.write_json(FILE, self)?)
    }

    /// Reads the table from a run's directory, or from the file itself. Errors: there is none, or it makes no sense.
    pub fn read(run: &Path) -> Result<Self, CannotEngage> {
        let file = if run.is_file() { run.to_owned() } else { run.join(FILE) };
        let wrong = |why: String| {
            CannotEngage::Parameters(format!(
                "--table {}: {why}; `nearmiss rehearse pair RUN` writes it",
                file.display()
            ))
        };
        let bytes = std::fs::read(&file).map_err(|e| wrong(e.to_string()))?;
        let kept: KeptPairs =
            serde_json::from_slice(&bytes).map_err(|e| wrong(format!("is no table of pairs: {e}")))?;
        kept.check().map_err(wrong)?;
        Ok(kept)
    }

    fn check(&self) -> Result<(), String> {
        let tasks = self.tasks.len();
        if self.schema != SCHEMA {
            return Err(format!("has the schema {:?} and not {SCHEMA}", self.schema));
        }
        if !(2..=MOST_TASKS).contains(&tasks) {
            return Err(format!("has {tasks} tasks, and not 2 to {MOST_TASKS}"));
        }
        if let Some(task) = self.tasks.iter().find(|task| !(task.weight.is_finite() && task.weight >= 0.0)) {
            return Err(format!("gives the task {:?} a weight of {}", task.name, task.weight));
        }
        let twice = |at: &usize| self.slot_of(self.tasks[*at].order) != Some(*at);
        if let Some(at) = (0..tasks).find(twice) {
            return Err(format!("has two tasks that are the command's {}", self.tasks[at].order));
        }
        self.pairs.iter().try_for_each(|pair| pair.check(tasks))
    }

    /// Returns the table for the policy library.
    pub fn table(&self) -> PairTable {
        let mut table = PairTable::new(self.tasks.len());
        for pair in &self.pairs {
            pair.of_alone.iter().for_each(|of_alone| table.add(pair.task, pair.beside, *of_alone));
        }
        table
    }

    /// Returns the weights by task.
    pub fn weights(&self) -> Vec<f64> {
        self.tasks.iter().map(|task| task.weight).collect()
    }

    /// The task of the table that is the command's `order`-th.
    pub fn slot_of(&self, order: usize) -> Option<usize> {
        self.tasks.iter().position(|task| task.order == order)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn two() -> KeptPairs {
        let task = |order, weight| KeptTask { order, name: format!("t{order}"), weight };
        let pair = |task, beside, of_alone: f64| KeptPair { task, beside, of_alone: vec![of_alone; 3] };
        let (tasks, pairs) = (vec![task(1, 2.0), task(2, 1.0)], vec![pair(0, 1, 1.5), pair(1, 0, 1.1)]);
        KeptPairs { schema: SCHEMA.to_owned(), shared: None, nothing_proposed: false, tasks, pairs }
    }

    #[test]
    fn a_kept_table_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(FILE), serde_json::to_vec(&two()).unwrap()).unwrap();
        let kept = KeptPairs::read(place.path()).unwrap();
        assert_eq!(KeptPairs::read(&place.path().join(FILE)).unwrap(), kept);
        assert_eq!((kept.slot_of(2), kept.slot_of(0)), (Some(1), None));
        assert_eq!(kept.table().costs(&kept.weights()).pair(0, 1), 1.5 * 2.0 + 1.1);
    }

    #[test]
    fn a_table_that_makes_no_sense_is_refused_in_words() {
        let place = tempfile::tempdir().unwrap();
        let refused = |text: &str| {
            std::fs::write(place.path().join(FILE), text).unwrap();
            KeptPairs::read(place.path()).unwrap_err().to_string()
        };
        assert!(refused("{").contains("is no table of pairs"));
        let with = |change: &dyn Fn(&mut KeptPairs)| {
            let mut kept = two();
            change(&mut kept);
            refused(&serde_json::to_string(&kept).unwrap())
        };
        assert!(with(&|kept| kept.schema = "x/2".into()).contains("schema"));
        assert!(with(&|kept| kept.pairs[0].beside = 9).contains("tasks 0 and 9"));
        assert!(with(&|kept| kept.pairs[0].beside = 0).contains("tasks 0 and 0"));
        assert!(with(&|kept| kept.pairs[1].of_alone[0] = -0.5).contains("takes -0.5 times as long"));
        assert!(with(&|kept| kept.tasks[1].weight = -1.0).contains("weight of -1"));
        assert!(with(&|kept| kept.tasks[1].order = 1).contains("two tasks that are the command's 1"));
        assert!(with(&|kept| kept.tasks.truncate(1)).contains("has 1 tasks, and not 2 to 4096"));
        std::fs::remove_file(place.path().join(FILE)).unwrap();
        let missing = KeptPairs::read(place.path()).unwrap_err();
        assert!(missing.to_string().contains("rehearse pair") && missing.exit_code() == 125, "{missing}");
    }
}
