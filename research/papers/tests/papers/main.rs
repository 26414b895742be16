//! The tests of the replicas, of their figures and of the command that prints them.

mod by_hand;
mod commands;
mod figures;
mod numa;
mod pairing;
mod pollution;
mod replicas;
