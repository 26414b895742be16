//! The tests of commands and servers: launched, timed, ended.

mod guardian;
mod launch;
mod serving;
