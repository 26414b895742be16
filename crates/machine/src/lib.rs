//! nearmiss machine.
