//! nearmiss report.
