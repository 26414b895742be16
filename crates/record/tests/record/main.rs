//! The tests of file formats, by hand and at random.

mod discarded;
mod logs;
mod logs_hostile;
mod logs_old;
mod support;
mod trace;
