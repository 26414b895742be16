//! The tests of remedies: suspicions on records, and C probes under each remedy.

mod apart_apply;
mod bound;
mod bypass_apply;
mod bypass_files;
mod color_apply;
mod color_clean;
mod handles;
mod huge_apply;
mod huge_detect;
mod keep_apply;
mod keep_detect;
mod local_apply;
mod local_detect;
mod pace_apply;
mod pace_once;
mod pace_rules;
mod pair_apply;
mod pair_detect;
mod probes;
mod script;
