//! Reading of a specification: its text, the changes of the command line, and the checks.

use crate::Error;
use crate::check::check;
use crate::spec::{Spec, listed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Changes of a specification by the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The scale's name.
    pub scale: Option<String>,
    /// Values of placeholders.
    pub set: BTreeMap<String, String>,
    /// How often each case runs.
    pub repetitions: Option<u32>,
    /// Shuffles the rounds.
    pub seed: Option<u64>,
    /// Whether the CPUs that a cell does not name are taken off line, from everybody.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hotplug: bool,
}

impl Spec {
    /// Reads the text of a specification, with changes; `file` is its name in errors. Errors: in one line what is
    /// wrong, where, and what is known.
    pub fn parse(file: &Path, text: &str, changes: &Changes) -> Result<Self, Error> {
        let wrong = |line, message: String| Error::Spec { file: file.to_owned(), line, message };
        let mut spec: Spec = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            wrong(line, e.message().lines().collect::<Vec<_>>().join(" "))
        })?;
        spec.change(changes).and_then(|()| check(&spec)).map_err(|message| wrong(None, message))?;
        Ok(spec)
    }

    fn change(&mut self, changes: &Changes) -> Result<(), String> {
        if let Some(name) = &changes.scale {
            let Some(scale) = self.scale.get(name).cloned() else {
                let known: Vec<String> = self.scale.keys().cloned().collect();
                return Err(match known.is_empty() {
                    true => format!("no scale `{name}`: the file has none"),
                    false => format!("no scale `{name}`; the file has {}", known.join(", ")),
                });
            };
            self.set.extend(scale.set);
            self.repetitions = scale.repetitions.unwrap_or(self.repetitions);
            self.timeout_s = scale.timeout_s.unwrap_or(self.timeout_s);
        }
        if let Some(name) = changes.set.keys().find(|name| !self.set.contains_key(*name)) {
            let known: Vec<&str> = self.set.keys().map(String::as_str).collect();
            return Err(format!("--set {name}: [set] has no such key; it has {}", listed(&known)));
        }
        self.set.extend(changes.set.clone());
        self.repetitions = changes.repetitions.unwrap_or(self.repetitions);
        self.seed = changes.seed.unwrap_or(self.seed);
        Ok(())
    }
}
