//! CPUs taken from the whole machine for the time of a cell, where affinity will not do: the kernel's own threads and
//! interrupts then have no other CPU either.

use crate::Error;
use crate::changed::{self, Changed};
use nearmiss_workload::{CpuSet, GuardedSettings, Setting};
use std::fs;
use std::path::Path;

/// The kernel's directory of its CPUs.
pub(crate) const CPUS: &str = "/sys/devices/system/cpu";

/// CPUs that are off line. Dropping it brings them back.
pub(crate) struct Offline<'a> {
    settings: Option<GuardedSettings>,
    lab: &'a Path,
}

impl<'a> Offline<'a> {
    /// Takes all CPUs off line but these. The changes are written down in the lab's directory first.
    pub(crate) fn all_but(cpus: &CpuSet, system: &Path, lab: &'a Path) -> Result<Self, Error> {
        let settings = to_be_changed(cpus, system)?;
        if settings.is_empty() {
            return Ok(Offline { settings: None, lab });
        }
        Changed::settings(&settings).write_down(lab)?;
        let offline = Offline { settings: Some(GuardedSettings::change(settings)?), lab };
        Ok(offline)
    }

    /// Brings them back.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        match self.settings.take() {
            Some(settings) => {
                drop(settings);
                changed::take_back(self.lab)
            }
            None => Ok(()),
        }
    }
}

/// Returns the settings of the CPUs that are on line and not among `cpus`.
fn to_be_changed(cpus: &CpuSet, system: &Path) -> Result<Vec<Setting>, Error> {
    let online = system.join("online");
    let online: CpuSet = fs::read_to_string(&online).map_err(Error::io(&online))?.trim().parse()?;
    let others = online.iter().filter(|cpu| !cpus.iter().any(|wanted| wanted == *cpu));
    let setting = |cpu| {
        let file = system.join(format!("cpu{cpu}/online"));
        let before = fs::read_to_string(&file).map_err(|_| {
            Error::CannotHere(format!("CPU {cpu} cannot be taken off line here: name it in every level's cpus"))
        })?;
        Ok(Setting { file, before: before.trim_end().to_owned(), wanted: "0".to_owned() })
    };
    others.map(setting).collect()
}

/// Errors: a CPU that would have to go and cannot, or one that is off line already.
pub(crate) fn can_leave(cpus: &CpuSet, system: &Path) -> Result<(), Error> {
    to_be_changed(cpus, system).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_wanted_cpus_go_and_come_back() {
        let (system, lab) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(system.path().join("online"), "0-3\n").unwrap();
        let file = |cpu: u32| system.path().join(format!("cpu{cpu}/online"));
        for cpu in 1..4 {
            fs::create_dir(file(cpu).parent().unwrap()).unwrap();
            fs::write(file(cpu), "1\n").unwrap();
        }
        let state = || (1..4).map(|cpu| fs::read_to_string(file(cpu)).unwrap()).collect::<Vec<_>>().concat();
        let only: CpuSet = "0,2".parse().unwrap();
        let offline = Offline::all_but(&only, system.path(), lab.path()).unwrap();
        assert_eq!(state(), "01\n0");
        assert!(lab.path().join("changed.json").exists());
        offline.end().unwrap();
        assert_eq!(state(), "11\n1");
        assert_eq!(fs::read_dir(lab.path()).unwrap().count(), 0);
        // The first CPU has no such file, as on most machines.
        let without = "1-3".parse().unwrap();
        let refused = can_leave(&without, system.path()).unwrap_err().to_string();
        assert_eq!(refused, "CPU 0 cannot be taken off line here: name it in every level's cpus");
    }
}
