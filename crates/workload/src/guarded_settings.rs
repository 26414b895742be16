//! Settings of the kernel that are changed for a while, and given back however the launcher ends.

use crate::Error;
use crate::blocked_signals::BlockedSignals;
use crate::guardian::{Guardian, Restore};
use std::fs;
use std::path::PathBuf;

/// A setting: its file, what it holds now, and what it is to hold for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Such as `/sys/devices/system/cpu/cpu1/online`.
    pub file: PathBuf,
    /// Content that is written back.
    pub before: String,
    /// Content that is written first.
    pub wanted: String,
}

/// Changed settings. Dropping it writes back what was there, in reverse order; so does a guardian, should this process
/// be killed. The guardian is there before anything is changed.
#[derive(Debug)]
pub struct GuardedSettings {
    settings: Vec<Setting>,
    _guardian: Guardian,
}

impl GuardedSettings {
    /// Changes settings in their order. Errors: what the system refused; what was changed is given back then.
    pub fn change(settings: Vec<Setting>) -> Result<Self, Error> {
        let restore: Vec<Restore> =
            settings.iter().rev().map(|of| Restore(of.file.clone(), of.before.clone().into_bytes())).collect();
        let blocked = BlockedSignals::new();
        let guardian = Guardian::of_command(None, &restore)?;
        drop(blocked);
        let changed = GuardedSettings { settings, _guardian: guardian };
        for setting in &changed.settings {
            fs::write(&setting.file, &setting.wanted)
                .map_err(|source| Error::System { what: "change a setting of the kernel", source })?;
        }
        Ok(changed)
    }
}

impl Drop for GuardedSettings {
    fn drop(&mut self) {
        for setting in self.settings.iter().rev() {
            // A setting that is gone needs none of this; one that refuses is what the journal is for.
            let _ = fs::write(&setting.file, &setting.before);
        }
    }
}
