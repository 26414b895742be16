//! Which copies write lines that stay unused while others miss what they evicted.

use super::blame::{Blame, Costs, blame};
use super::find::groups;
use super::finding::{Copying, unrehearsed};
use super::group::Group;
use super::way::{CopyWay, Ways};
use super::{live, reread};
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions, Traced};
use nearmiss_machine::describe;
use nearmiss_record::finding::{EvidenceKind, LEAST_GAIN};
use nearmiss_record::words::percent;
use rustc_hash::FxHashMap;

/// Everything in a run that copies past the caches may help with.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let Some(case) = &case.traced else { return Ok(sampled(case)) };
    let mut suspicions = of_copies(case)?;
    suspicions.extend(reread::detect(case)?.map(|found| Box::new(found) as Box<dyn Suspicion>));
    Ok(suspicions)
}

/// Returns the suspicion that copies push out what others miss.
fn of_copies(case: &Traced) -> Result<Suspicions, CaseError> {
    let program = Program::of(case);
    let most_gain = program.most_gain();
    if let Err(why) = describe::can_go_around(case.filter, case.machine()) {
        return Ok(program.unrehearsed(&why, most_gain));
    }
    // No need to find who copies, if others pay too little for all of it.
    if case.pollution.is_empty() || !case.thorough && most_gain < LEAST_GAIN {
        return Ok(Vec::new());
    }
    let groups = of_the_program(groups(case)?.all());
    let suspicion = (!groups.is_empty()).then(|| Box::new(Copying::new(case, groups)) as Box<dyn Suspicion>);
    Ok(suspicion.into_iter().collect())
}

/// The kernel's copies are no fault of the program: it clears pages for every one.
fn of_the_program(groups: Vec<Group>) -> Vec<Group> {
    groups.into_iter().filter(|group| !group.is_kernels).collect()
}

/// Returns the suspicion from the samples of an observation.
fn sampled(case: &Case) -> Suspicions {
    let found = case.observation.as_ref().and_then(|observation| live::detect(observation.observed()));
    found.map(|found| Box::new(found) as Box<dyn Suspicion>).into_iter().collect()
}

/// Blame of the program's own code, be it copies or not: a trace need not carry stores for that.
struct Program<'a> {
    case: &'a Traced,
    ways: Ways<'a>,
    blamed: FxHashMap<CopyWay, Blame>,
    /// Misses of all pollution, the kernel's too.
    all: u64,
}

impl<'a> Program<'a> {
    fn of(case: &'a Traced) -> Self {
        let ways = Ways { symbols: &case.symbols, contexts: &case.side.contexts };
        let mut blamed = blame(&ways, &case.pollution);
        let all = blamed.values().map(Blame::misses).sum();
        blamed.retain(|way, _| !matches!(way, CopyWay::Inside(function) if ways.is_kernel(*function)));
        Program { case, ways, blamed, all }
    }

    /// Share of the command's cycles that it could cost at the very most.
    fn most_gain(&self) -> f64 {
        let mut all = Blame::default();
        all.extend(self.blamed.values());
        Costs::of(self.case, self.ways).most(&all) as f64 / self.case.model.totals.cycles.max(1) as f64
    }

    /// Suspects the copies to be recorded again, for a trace that carries no stores.
    fn unrehearsed(&self, why: &str, most_gain: f64) -> Suspicions {
        let Some((way, blame)) = self.blamed.iter().max_by_key(|(way, blame)| (blame.misses(), **way)) else {
            return Vec::new();
        };
        let who = match way {
            CopyWay::Called { call, .. } => {
                format!("copies that `{}` calls for are", self.ways.name(self.ways.function(*call)))
            }
            CopyWay::Inside(function) => format!("what `{}` brings in is", self.ways.name(*function)),
        };
        let share = percent(blame.misses() as f64 / self.all.max(1) as f64);
        let sentence = format!("{who} blamed for {share} of all pollution, and {why}");
        vec![Box::new(unrehearsed(sentence, "the trace carries no stores", EvidenceKind::Modelled, most_gain))]
    }
}

#[cfg(test)]
mod tests {
    use super::super::sight::CopyCounts;
    use super::*;

    #[test]
    fn the_kernels_copies_are_no_finding_of_the_program() {
        let group = |site: &str, is_kernels| Group {
            site: site.parse().unwrap_or_else(|why: String| panic!("{why}")),
            function: site.to_owned(),
            is_reachable: false,
            is_kernels,
            seen: CopyCounts::default(),
            blame: Blame::default(),
            blamed_cycles: 1_000_000,
        };
        let left = of_the_program(vec![group("clear_page_orig", true), group("fill", false)]);
        assert_eq!(left.iter().map(|group| group.function.as_str()).collect::<Vec<_>>(), ["fill"]);
    }
}
