//! Requirements of a lab on this machine, checked before the first cell runs.

use crate::case::MatrixCase;
use crate::command::{self, Places};
use crate::loop_device::CONTROL;
use crate::spec::{Guest, Spec};
use crate::{Error, Executor, hotplug};
use nearmiss_workload::CpuSet;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A lab that is to run.
pub(crate) struct PlannedLab<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) cases: &'a [MatrixCase],
    pub(crate) nearmiss: &'a Path,
    pub(crate) start: &'a Path,
}

impl PlannedLab<'_> {
    /// Errors: the first case that cannot run there, why, and what would help.
    pub(crate) fn can_run(&self, executor: &dyn Executor, hotplug: bool) -> Result<(), Error> {
        let allowed = CpuSet::allowed()?;
        if hotplug && !rustix::process::geteuid().is_root() {
            return Err(Error::CannotHere("--hotplug needs root: run it as root, or leave --hotplug away".to_owned()));
        }
        for case in self.cases {
            match case.guest(self.spec) {
                Some(guest) => self.fits_guest(case, &guest, executor)?,
                None if executor.is_elsewhere() => continue,
                None => {
                    self.has_cpus(case, &allowed, hotplug)?;
                    self.has_rights(case)?;
                }
            }
            if !executor.is_elsewhere() {
                self.has_programs(case)?;
            }
        }
        Ok(())
    }

    fn fits_guest(&self, case: &MatrixCase, guest: &Guest, executor: &dyn Executor) -> Result<(), Error> {
        let has = guest.cpus.unwrap_or(1) as usize;
        if let Some(beyond) = command::cpus(self.spec, case)?.and_then(|cpus| cpus.iter().find(|cpu| *cpu >= has)) {
            return Err(Error::CannotHere(format!(
                "{}: CPU {beyond} is not in the guest, which has {has}: give the level's guest more `cpus`",
                case.name
            )));
        }
        if case.file_system(self.spec).is_some() {
            return Err(Error::CannotHere(format!(
                "{}: the guest's kernel has no loop devices: leave the level's guest or its filesystem out",
                case.name
            )));
        }
        executor.has_guest(guest).map_err(|error| match error {
            Error::CannotHere(why) => Error::CannotHere(format!("{}: {why}", case.name)),
            error => error,
        })
    }

    fn has_cpus(&self, case: &MatrixCase, allowed: &CpuSet, hotplug: bool) -> Result<(), Error> {
        let Some(cpus) = command::cpus(self.spec, case)? else { return Ok(()) };
        if cpus.is_empty() {
            return Err(Error::CannotHere(format!("{}: its levels have no CPU in common", case.name)));
        }
        match cpus.iter().find(|cpu| !allowed.iter().any(|other| other == *cpu)) {
            None if hotplug => hotplug::can_leave(&cpus, Path::new(hotplug::CPUS)),
            None => Ok(()),
            Some(missing) => Err(Error::CannotHere(format!(
                "{}: CPU {missing} is not among those that nearmiss may use here ({allowed}): change the levels' cpus",
                case.name
            ))),
        }
    }

    /// Devices, mounts and the page cache are root's.
    fn has_rights(&self, case: &MatrixCase) -> Result<(), Error> {
        let file_system = case.file_system(self.spec);
        let what = match (file_system, case.drops_caches(self.spec)) {
            (Some(_), _) => "file systems on loop devices",
            (None, true) => "an empty page cache",
            (None, false) => return Ok(()),
        };
        if !rustix::process::geteuid().is_root() {
            return Err(Error::CannotHere(format!(
                "{}: {what} need root: run it as root, or leave that level out",
                case.name
            )));
        }
        let Some(file_system) = file_system else { return Ok(()) };
        if !Path::new(CONTROL).exists() {
            return Err(Error::CannotHere(format!("{}: no {CONTROL} here: `modprobe loop` makes it", case.name)));
        }
        let mkfs = command::mkfs(file_system, Path::new("image"), &BTreeMap::new());
        mkfs.program().map(drop).map_err(|error| Error::CannotHere(format!("{}: {error}", case.name)))
    }

    /// Checks a case's programs. A program with a path in the cell's own directory cannot be looked for yet.
    fn has_programs(&self, case: &MatrixCase) -> Result<(), Error> {
        let nowhere = PathBuf::from("/nearmiss-lab-cell");
        let directories = vec![nowhere.clone(); case.workload(self.spec).directories as usize];
        let places = Places { nearmiss: self.nearmiss, start: self.start, out: nowhere.clone(), directories };
        let values = command::values(self.spec, case, &places);
        let measured = command::measured(self.spec, case, &values, &places)?;
        let prepare = command::prepare(self.spec, case, &values, &places)?;
        for workload in [Some(measured), prepare].into_iter().flatten() {
            let of_the_cell = workload.argv().first().is_some_and(|name| Path::new(name).starts_with(&nowhere));
            if !of_the_cell && let Err(error) = workload.program() {
                return Err(Error::CannotHere(format!("{}: {error}", case.name)));
            }
        }
        Ok(())
    }
}
