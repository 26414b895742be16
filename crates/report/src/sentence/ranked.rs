//! The waits of a run's functions and objects by reason, and which of them a sentence names.

use super::{function_phrase, object_phrase, quoted};
use crate::load::Report;
use crate::number::spoken_percent;
use nearmiss_record::model::{FunctionRow, ModelRecord, ObjectKind, ObjectRow};
use nearmiss_record::waits::{ByReason, Reason, Waits};

/// Functions and objects by their waits: see the module's text.
pub(super) struct Ranked<'a> {
    model: &'a ModelRecord,
    functions: Vec<(&'a FunctionRow, ByReason)>,
    objects: Vec<(&'a ObjectRow, ByReason)>,
}

impl<'a> Ranked<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        let waits = Waits::new(&report.model);
        Ranked {
            model: &report.model,
            functions: report.model.functions.iter().map(|row| (row, waits.of(&row.tally))).collect(),
            objects: report.model.objects.iter().map(|row| (row, waits.of(&row.tally))).collect(),
        }
    }

    /// Cycles waited for a reason.
    pub(super) fn cycles(&self, reason: Reason) -> u64 {
        self.functions.iter().map(|(_, parts)| parts[reason as usize]).sum()
    }

    /// Returns the cycles with the kernel's at half: what the program itself waits for comes first.
    pub(super) fn worth(&self, reason: Reason) -> f64 {
        let kernel: u64 =
            self.functions.iter().filter(|(row, _)| row.kernel).map(|(_, parts)| parts[reason as usize]).sum();
        self.cycles(reason) as f64 - kernel as f64 / 2.0
    }

    /// The named function that waits most for a reason, and how long.
    pub(super) fn function(&self, reason: Reason) -> Option<(&'a FunctionRow, u64)> {
        named(&self.functions, |parts| parts[reason as usize])
    }

    /// The known object that is waited for most, if most of the wait is for it.
    pub(super) fn object(&self, reason: Reason) -> Option<&'a ObjectRow> {
        let known =
            self.objects.iter().filter(|(row, _)| !matches!(row.kind, ObjectKind::Unattributed | ObjectKind::Code));
        let (row, parts) = known.max_by_key(|(_, parts)| parts[reason as usize])?;
        let whole: u64 = self.objects.iter().map(|(_, parts)| parts[reason as usize]).sum();
        let cycles = parts[reason as usize];
        (cycles > 0 && cycles.saturating_mul(2) >= whole).then_some(*row)
    }

    /// ` in F on O`, as far as they are known.
    pub(super) fn place(&self, reason: Reason) -> String {
        let object = self.object(reason).map(|row| format!(" on {}", object_phrase(row))).unwrap_or_default();
        self.function_on(reason, object)
    }

    /// ` in F` and the object; `, most in F (31% of them)` where the function has a fifth to a half of the wait.
    pub(super) fn function_on(&self, reason: Reason, object: String) -> String {
        let whole = self.cycles(reason);
        match self.function(reason) {
            Some((row, n)) if n.saturating_mul(2) >= whole => format!(" in {}{object}", on_behalf(self.model, row)),
            Some((row, n)) if n.saturating_mul(5) >= whole => {
                format!("{object}, most in {} ({} of them)", on_behalf(self.model, row), spoken_percent(n, whole))
            }
            _ => object,
        }
    }
}

/// Names a function; for the kernel's, also the function of the program for which the kernel waits, where one has
/// half.
pub(super) fn on_behalf(model: &ModelRecord, row: &FunctionRow) -> String {
    let waits: u64 = model.functions.iter().filter(|row| row.kernel).map(|row| row.tally.stall_cycles).sum();
    let caller = model.callers.first().filter(|caller| caller.kernel_stall_cycles.saturating_mul(2) >= waits);
    match caller.filter(|_| row.kernel) {
        Some(caller) => format!("{} for {}", function_phrase(row), quoted(&caller.function)),
        None => function_phrase(row),
    }
}

/// The named function with the most of something: the kernel's only where it has twice as much as any of the program.
pub(super) fn named<'a, T>(
    rows: &[(&'a FunctionRow, T)],
    figure: impl Fn(&T) -> u64,
) -> Option<(&'a FunctionRow, u64)> {
    let most = |kernel: bool| {
        let of_mode = rows.iter().filter(move |(row, _)| row.kernel == kernel && !row.name.starts_with('['));
        of_mode.map(|(row, of)| (*row, figure(of))).filter(|(_, n)| *n > 0).max_by_key(|(_, n)| *n)
    };
    match (most(false), most(true)) {
        (Some(user), Some(kernel)) if kernel.1 > user.1.saturating_mul(2) => Some(kernel),
        (user, kernel) => user.or(kernel),
    }
}
