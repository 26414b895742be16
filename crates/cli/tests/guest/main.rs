//! The tests that trace programs in a guest, or have a guest of their own.

mod branches;
mod bypass;
mod calibrated;
mod carried;
mod containers;
mod cores;
mod cut_off;
mod diagnose;
mod diagnosing;
mod doctor;
mod gate;
mod guest_slots;
mod hostile;
mod install;
mod interrupt;
mod kernel_structures;
mod lab_guest;
mod large_pages;
mod local;
mod login;
mod made_code;
mod managed;
mod mcp;
mod nodes;
mod observe_guest;
mod pair;
mod pair_guest;
mod pair_refused;
#[path = "../support/running.rs"]
mod running;
mod running_program;
mod scripted;
mod sharing;
#[path = "../support/subjects.rs"]
mod subjects;
mod timers;
mod together;
mod trace;
mod trace_counts;
mod trace_hostile;
mod under_load;
mod warm;
mod window;
