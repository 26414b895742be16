//! What a lab needs of this machine, asked before the first cell runs.

use crate::Error;
use crate::case::Case;
use crate::command::{self, Places};
use crate::loop_device::CONTROL;
use crate::spec::Spec;
use nearmiss_workload::CpuSet;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Errors: the first case that cannot run here, why, and what would help.
pub(crate) fn can_run(spec: &Spec, cases: &[Case], nearmiss: &Path, start: &Path) -> Result<(), Error> {
    let allowed = CpuSet::allowed()?;
    for case in cases {
        has_cpus(spec, case, &allowed)?;
        has_programs(spec, case, nearmiss, start)?;
        has_rights(spec, case)?;
    }
    Ok(())
}

fn has_cpus(spec: &Spec, case: &Case, allowed: &CpuSet) -> Result<(), Error> {
    let Some(cpus) = command::cpus(spec, case)? else { return Ok(()) };
    if cpus.is_empty() {
        return Err(Error::CannotHere(format!("{}: its levels have no CPU in common", case.name)));
    }
    match cpus.iter().find(|cpu| !allowed.iter().any(|other| other == *cpu)) {
        None => Ok(()),
        Some(missing) => Err(Error::CannotHere(format!(
            "{}: CPU {missing} is not among those that nearmiss may use here ({allowed}): change the levels' cpus",
            case.name
        ))),
    }
}

/// Devices, mounts and the page cache are root's.
fn has_rights(spec: &Spec, case: &Case) -> Result<(), Error> {
    let file_system = case.file_system(spec);
    let what = match (file_system, case.drops_caches(spec)) {
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

/// Programs whose path a cell's own directory is part of cannot be looked for yet.
fn has_programs(spec: &Spec, case: &Case, nearmiss: &Path, start: &Path) -> Result<(), Error> {
    let nowhere = PathBuf::from("/nearmiss-lab-cell");
    let directories = vec![nowhere.clone(); case.workload(spec).directories as usize];
    let places = Places { nearmiss, start, out: nowhere.clone(), directories };
    let values = command::values(spec, case, &places);
    let measured = command::measured(spec, case, &values, &places)?;
    let prepare = command::prepare(spec, case, &values, &places)?;
    for workload in [Some(measured), prepare].into_iter().flatten() {
        let of_the_cell = workload.argv().first().is_some_and(|name| Path::new(name).starts_with(&nowhere));
        if !of_the_cell && let Err(error) = workload.program() {
            return Err(Error::CannotHere(format!("{}: {error}", case.name)));
        }
    }
    Ok(())
}
