//! Gain of a run from pages of 2 MiB: another reach of address translation, and another walk behind it.

use crate::cost::Cost;
use crate::placements::{AGREED_BY_TWO, seeds};
use crate::replay::CaseError;
use crate::replays::{Replays, spread, waits};
use crate::traced::Traced;
use nearmiss_machine::describe::can_move_addresses;
use nearmiss_record::finding::LEAST_GAIN;
use nearmiss_record::model::Translation;
use nearmiss_record::words::{grouped, percent};

/// Placements that a prediction is made on, and on one more where these do not agree: both sides of each have the same
/// one.
const PLACEMENTS: usize = 2;

/// Whether what they would save could matter, and the trace's filter dropped look-ups: a filter of several lines does
/// not keep which page was used last.
pub fn lacks_look_ups(case: &Traced) -> bool {
    most_saved(case).is_some_and(|most| most >= LEAST_GAIN) && can_move_addresses(case.filter).is_err()
}

/// A sentence where the command's user memory in pages of 2 MiB would save [`LEAST_GAIN`] and more of its cycles; none
/// where the machine's cores lack the cost of a page. Nothing is replayed where the look-ups that miss take less.
pub fn large_pages(case: &Traced) -> Result<Option<String>, CaseError> {
    let (Some(told), Some(most)) = (case.model.translation, most_saved(case)) else { return Ok(None) };
    if most < LEAST_GAIN {
        return Ok(None);
    }
    let mut large = case.machine().clone();
    if let Some(tlb) = &mut large.tlb {
        tlb.user_pages_large = true;
    }
    let seeds = seeds(case.machine(), PLACEMENTS + 1);
    let mut sides = [Vec::new(), Vec::new()];
    for some in [&seeds[..PLACEMENTS], &seeds[PLACEMENTS..]] {
        let costs = Replays::of(case).machines(&[case.machine(), &large]).placements(some).run()?;
        sides.iter_mut().zip(costs).for_each(|(side, more)| side.extend(more));
        let (_, low, high) = gain(case, &sides[0], &sides[1]);
        if high - low <= AGREED_BY_TWO {
            break;
        }
    }
    let gain = gain(case, &sides[0], &sides[1]);
    Ok((gain.0 >= LEAST_GAIN).then(|| sentence(case, told, gain, sides[0].len())))
}

/// Share of the cycles that all look-ups take which miss the first level, as if nothing hid them.
fn most_saved(case: &Traced) -> Option<f64> {
    let told = case.model.translation?;
    let tlb = case.machine().tlb?;
    let second = tlb.second.as_ref()?;
    let walks = told.walks.saturating_mul(second.walk_cycles.into());
    let cycles = told.first_misses.saturating_mul(tlb.miss_cycles.into()).saturating_add(walks);
    Some(cycles as f64 / case.model.totals.cycles.max(1) as f64)
}

/// Share of the command's cycles: median, least, most over the placements.
fn gain(case: &Traced, small: &[Cost], large: &[Cost]) -> (f64, f64, f64) {
    let totals = &case.model.totals;
    let cycles = |cost: &Cost| (totals.cycles - totals.stall_cycles + cost.stall_cycles) as f64;
    spread(small.iter().zip(large).map(|(small, large)| 1.0 - cycles(large) / cycles(small).max(1.0)))
}

fn sentence(case: &Traced, told: Translation, (middle, low, high): (f64, f64, f64), placements: usize) -> String {
    format!(
        "Predicted: pages of 2 MiB for all memory of user mode would save {} [{}, {}] of the modelled cycles ({placements} \
         page placements, {}): {} look-ups of data missed the first level of translation, {} walked to a page of 4 KiB. \
         malloc asks for large pages with GLIBC_TUNABLES=glibc.malloc.hugetlb=1, a program with madvise(MADV_HUGEPAGE); a \
         page that is used in small part then takes its whole 2 MiB.",
        percent(middle),
        percent(low),
        percent(high),
        waits(case),
        grouped(told.first_misses),
        grouped(told.walks)
    )
}
