//! The tests of comparisons: of real commands, of servers under loads, of a synthetic machine.

mod commands;
mod honesty;
mod under_load;
