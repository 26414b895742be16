//! Chases through lines at one offset of their pages, and at many. The first finds how many sets such lines reach, as
//! an index's hash makes of page numbers; the second finds the cost of address translation.

use super::chase::Cycle;
use serde::{Deserialize, Serialize};

/// Pages of the longest walk: as many as second levels of translation hold.
const MOST_PAGES: u64 = 1024;
/// Pages so far apart share a set of any first level of translation that has sets: 16 of them on a Golden Cove.
const PAGES_APART: u64 = 64;
/// Beyond this part of the way to the next level's latency, lines were pushed out.
const PUSHED_OUT: f64 = 0.15;
/// Less than this is no cost of translation but noise.
const LEAST_TRANSLATION_NS: f64 = 0.3;

/// First level of address translation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstTranslation {
    /// Pages that it holds.
    pub entries: u32,
    /// Pages of them so far apart that they share a set; none: any page anywhere.
    pub ways: Option<u32>,
    /// Nanoseconds that a page costs which only the second level holds.
    pub miss_ns: f64,
}

/// Measures the first level of address translation.
pub fn translation(first_level_lines: u64) -> Option<FirstTranslation> {
    let most = (first_level_lines / 2).min(MOST_PAGES);
    let time = |pages: u64| chase(pages, 1, true);
    let (near, far) = (time(16)?, time(most)?);
    if far - near < LEAST_TRANSLATION_NS {
        return None;
    }
    let held = [32, 40, 48, 64, 72, 96, 128, 192, 256].into_iter().filter(|pages| *pages < most);
    let is_held = |time: Option<f64>| time.is_some_and(|ns| ns - near < (far - near) / 2.0);
    let entries = held.take_while(|pages| is_held(time(*pages))).last().unwrap_or(16);
    let ways = (1..=entries).filter(|ways| entries.is_multiple_of(*ways));
    let of_a_set = ways.take_while(|ways| is_held(chase(*ways, PAGES_APART, true))).last();
    let ways = of_a_set.filter(|ways| *ways < entries).map(|ways| ways as u32);
    Some(FirstTranslation { entries: entries as u32, ways, miss_ns: far - near })
}

/// Returns how many sets of a level lines at one offset of their pages reach: the most of them that it holds, by ways.
/// `near_ns` and `next_ns`: latencies of the level and of the one behind it; `translation_ns` is in neither.
pub fn sets_at_one_offset(
    ways: u32,
    page_sets: u64,
    near_ns: f64,
    next_ns: f64,
    translation: Option<FirstTranslation>,
) -> Option<u64> {
    let mut reached = None;
    let mut sets = page_sets;
    // Pages fall at random: half of the sets' capacity fits nearly always, all of it never does.
    while sets * u64::from(ways) / 2 <= MOST_PAGES {
        let lines = sets * u64::from(ways) / 2;
        let translating =
            translation.filter(|first| lines > u64::from(first.entries)).map_or(0.0, |first| first.miss_ns);
        let beyond = chase(lines, 1, false)? - near_ns - translating;
        if beyond > PUSHED_OUT * (next_ns - near_ns) {
            break;
        }
        reached = Some(sets);
        sets *= 2;
    }
    reached
}

/// Nanoseconds a load of these pages, so many pages apart.
fn chase(pages: u64, apart: u64, many_offsets: bool) -> Option<f64> {
    const LINES_A_PAGE: u64 = 64;
    let line = |page: u64| page * apart * LINES_A_PAGE + if many_offsets { page % LINES_A_PAGE } else { 0 };
    let lines: Vec<u32> = (0..pages).map(|page| u32::try_from(line(page)).unwrap_or(0)).collect();
    Cycle::through(usize::try_from(pages * apart * 4096).ok()?, lines).ok().map(|cycle| cycle.nanoseconds())
}
