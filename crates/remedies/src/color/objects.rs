//! Objects of a finding, by name.

use super::subject::{Class, Subject, is_of_pieces};
use nearmiss_analysis::Traced;

/// Most objects and functions that a finding lists.
pub const MOST_LISTED: usize = 5;

/// Objects of one name.
pub struct Objects {
    /// Name, as in the report.
    pub name: String,
    /// Allocating call stack, outermost first, where there is one.
    pub allocated_at: Vec<String>,
    /// How many.
    pub count: u64,
    /// Bytes of one, where they are alike.
    pub size_bytes: Option<u64>,
    /// Share of the misses of the heaviest level, or of the loads that wait, that the objects have.
    pub miss_share: f64,
}

impl Objects {
    /// Objects that crowd on few sets, those with most misses first.
    pub fn crowded(case: &Traced, subject: &Subject) -> Vec<Self> {
        let mut list: Vec<Objects> = subject
            .by_name()
            .into_iter()
            .map(|crowd| {
                let sizes: Vec<u64> = crowd.extents.iter().map(|(start, end, _)| end - start).collect();
                let all = case.model.totals.levels.get(crowd.level).map_or(0, |tally| tally.data_misses());
                let objects = crowd.extents.len() as u64;
                let merged = subject.class == Class::Mappings && is_of_pieces(crowd);
                Objects {
                    name: if subject.class == Class::Stacks { "thread stacks".to_owned() } else { crowd.name.clone() },
                    // A stack is named by its own thread: who made the thread is not known.
                    allocated_at: if subject.class == Class::Stacks { Vec::new() } else { crowd.allocated_at.clone() },
                    count: if merged { crowd.pieces } else { objects },
                    size_bytes: sizes.first().copied().filter(|first| sizes.iter().all(|bytes| bytes == first)),
                    miss_share: crowd.misses as f64 / all.max(1) as f64,
                }
            })
            .collect();
        list.sort_by(|a, b| b.miss_share.total_cmp(&a.miss_share));
        list.truncate(MOST_LISTED);
        list
    }
}
