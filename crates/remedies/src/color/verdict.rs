//! Verdict on coloring at one level of the caches.

use super::colors::fully_hashed;
use nearmiss_analysis::Traced;
use nearmiss_record::machine::Index;

/// Whether coloring can help at a level, and why or why not.
pub fn level_verdict(case: &Traced, level: usize, least_colors: Option<u64>, lines: u64) -> (bool, String) {
    let Some(cache) = case.cache(level) else { return (false, "no such cache".to_owned()) };
    let way_bytes = cache.size.0 / u64::from(cache.ways.max(1));
    match (cache.index, least_colors) {
        _ if fully_hashed(cache) => (false, "its sets are hashed: no color moves a line to a set of choice".to_owned()),
        (_, None) => (
            true,
            format!(
                "{lines} lines are in use at a time and it holds {}: a part of them finds room",
                cache.size.0 / cache.line.0
            ),
        ),
        _ if way_bytes <= case.machine().memory.page_size.0 => {
            (true, "its index lies within the page: every color reaches a set of its own".to_owned())
        }
        (Index::Virtual, _) => (true, "its index is virtual: every color reaches a set of its own".to_owned()),
        (Index::Hashed, _) => (
            true,
            "a part of its set's number is plain bits of the offset within the page; the rest is hashed".to_owned(),
        ),
        _ => (
            true,
            "the offset within the page picks a part of its set; the rest is the page's place in memory".to_owned(),
        ),
    }
}
