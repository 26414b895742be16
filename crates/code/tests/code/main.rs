//! The tests of machine code, assembled and at random.

mod addresses;
mod any_code;
mod origin;
mod support;
mod times;
