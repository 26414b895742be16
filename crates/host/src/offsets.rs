//! Chases through lines at one offset of their pages, and at many. The first finds how many sets such lines reach, as
//! an index's hash makes of page numbers; the second finds the cost of address translation.

use super::chase::Cycle;

/// Pages of the longest walk: as many as second levels of translation hold.
const MOST_PAGES: u64 = 1024;
/// Beyond this part of the way to the next level's latency, lines were pushed out.
const PUSHED_OUT: f64 = 0.15;
/// Less than this is no cost of translation but noise.
const LEAST_TRANSLATION_NS: f64 = 0.3;

/// First level of address translation: pages, and the cost of a page that only the second holds.
pub fn translation(first_level_lines: u64) -> Option<(u32, f64)> {
    let most = (first_level_lines / 2).min(MOST_PAGES);
    let time = |pages: u64| chase(pages, true);
    let (near, far) = (time(16)?, time(most)?);
    if far - near < LEAST_TRANSLATION_NS {
        return None;
    }
    let held = [32, 40, 48, 64, 72, 96, 128, 192, 256].into_iter().filter(|pages| *pages < most);
    let entries = held.take_while(|pages| time(*pages).is_some_and(|ns| ns - near < (far - near) / 2.0)).last();
    Some((entries.unwrap_or(16) as u32, far - near))
}

/// Returns how many sets of a level lines at one offset of their pages reach: the most of them that it holds, by ways.
/// `near_ns` and `next_ns`: latencies of the level and of the one behind it; `translation_ns` is in neither.
pub fn sets_at_one_offset(
    ways: u32,
    page_sets: u64,
    near_ns: f64,
    next_ns: f64,
    translation: Option<(u32, f64)>,
) -> Option<u64> {
    let mut reached = None;
    let mut sets = page_sets;
    // Pages fall at random: half of the sets' capacity fits nearly always, all of it never does.
    while sets * u64::from(ways) / 2 <= MOST_PAGES {
        let lines = sets * u64::from(ways) / 2;
        let translating = translation.filter(|(entries, _)| lines > u64::from(*entries)).map_or(0.0, |(_, ns)| ns);
        let beyond = chase(lines, false)? - near_ns - translating;
        if beyond > PUSHED_OUT * (next_ns - near_ns) {
            break;
        }
        reached = Some(sets);
        sets *= 2;
    }
    reached
}

fn chase(pages: u64, many_offsets: bool) -> Option<f64> {
    const LINES_A_PAGE: u64 = 64;
    let line = |page: u64| page * LINES_A_PAGE + if many_offsets { page % LINES_A_PAGE } else { 0 };
    let lines: Vec<u32> = (0..pages).map(|page| u32::try_from(line(page)).unwrap_or(0)).collect();
    Cycle::through(usize::try_from(pages * 4096).ok()?, lines).ok().map(|cycle| cycle.nanoseconds())
}
