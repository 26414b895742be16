//! nearmiss observe.
