//! Build-time work of the observe crate.

#[path = "build/bpf.rs"]
mod bpf;

fn main() {
    bpf::compile();
}
