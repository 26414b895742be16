//! Exactness of figures under policies that move addresses.

use nearmiss_analysis::Traced;
use nearmiss_machine::describe::can_move_addresses;

/// Returns how exact the figures are with the filter that made the trace.
pub(crate) fn exactness(case: &Traced) -> &'static str {
    match can_move_addresses(case.filter) {
        Ok(()) => "exact: the trace was made with the one-line filter",
        Err(_) => {
            "approximate at the first level: the trace's filter of several lines assumed that lines stay where they are"
        }
    }
}
