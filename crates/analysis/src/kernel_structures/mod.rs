//! Fields of the kernel's structures: which a run reads and writes, by which functions, and how many lines they take.
//!
//! The types and the slabs of the guest's kernel are in the run's symbols where its trace has every access. The trace is
//! read once, without a model. A slab's use is that at the window's end: objects of a slab that was freed before are
//! missed.

mod calls;
mod places;
mod table;
mod uses;

use crate::replay::{self, CaseError};
use calls::CallTree;
use nearmiss_machine::describe::can_place_fields;
use nearmiss_record::kernel_structures::KernelStructures;
use nearmiss_record::run::{self, Manifest, RunDir};
use nearmiss_record::symbols::Symbols;
use uses::Uses;

/// Counts the uses of the kernel's structures in a run. `during`: names of kernel functions; references count
/// during calls of these alone. Without any, all references of the kernel do.
///
/// Errors: a trace without every access, without the kernel or without the kernel's types, or without such a function.
pub fn kernel_structures(run: &RunDir, during: &[String]) -> Result<KernelStructures, CaseError> {
    let header = replay::header(run)?;
    let unfit = |what: &str| CaseError::Unfit(format!("{}: {what}", run.path().display()));
    if header.only_user || can_place_fields(header.filter).is_err() {
        return Err(unfit(
            "fields of the kernel's structures need every access of the kernel; record the run again with \
             `nearmiss trace --carry fields`, without --only user",
        ));
    }
    if !during.is_empty() && !header.filter.contexts {
        return Err(unfit("calls need calling contexts, and the run was recorded with --no-stacks"));
    }
    let manifest: Manifest = run.read_json(run::MANIFEST)?;
    let symbols: Symbols = run.read_json(run::SYMBOLS)?;
    if symbols.kernel_structures.is_empty() {
        return Err(unfit(
            "the run has no types of the kernel: it was recorded by an earlier nearmiss, or under a kernel without them",
        ));
    }
    let mut uses = Uses::new(&symbols, tree(run, &symbols, during)?, !during.is_empty());
    replay::read(run, |head, records| uses.chunk(head.vcpu, head.context, records))?;
    uses.finish();
    Ok(table::table(&uses, &symbols, manifest.kernel, during))
}

/// Calls of the chosen functions. A part that the compiler split off (`tcp_ack.part.0`) goes by the function's name.
fn tree(run: &RunDir, symbols: &Symbols, during: &[String]) -> Result<CallTree, CaseError> {
    let whole = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let number = |name: &str| during.iter().position(|chosen| *chosen == whole(name) || chosen == name);
    let chosen: Vec<u32> = symbols
        .functions
        .iter()
        .map(|function| number(&function.name).filter(|_| function.kernel).map_or(0, |at| at as u32 + 1))
        .collect();
    let missing = (1..).zip(during).find(|(number, _)| !chosen.contains(number));
    if let Some((_, name)) = missing {
        return Err(CaseError::Unfit(format!("{}: no code of a kernel function `{name}` ran", run.path().display())));
    }
    let functions = symbols.insns.iter().map(|insn| insn.0).collect();
    Ok(CallTree::new(chosen, functions, &replay::side(run)?.contexts))
}
