//! An order of the records of several CPUs, as reports name it.

use nearmiss_record::policy::Order;

/// `recorded (sharing is a lower bound)`, with these words for what is bounded; `modelled`.
pub(crate) fn with_bound(order: Order, bounded: &str) -> String {
    let bound = order.sharing_bound().map_or(String::new(), |bound| format!(" ({bounded} {bound})"));
    format!("{}{bound}", order.word())
}

/// `recorded order: a lower bound`, for figures of sharing; `modelled order`.
pub(crate) fn of_sharing(order: Order) -> String {
    let bound = order.sharing_bound().map_or(String::new(), |bound| format!(": {bound}"));
    format!("{} order{bound}", order.word())
}
