//! The tests that run commands here, with remedies or in labs, and need no guest.

mod gate;
mod lab;
mod lab_kill;
mod lab_reports;
mod lab_slurm;
mod r#loop;
mod mcp;
mod one_more_remedy;
mod pace;
mod pair_apply;
mod slurm;
#[path = "../support/subjects.rs"]
mod subjects;
mod taken_away;
mod verify;
