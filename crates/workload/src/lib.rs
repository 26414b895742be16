//! nearmiss workload.
