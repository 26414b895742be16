//! Names of system calls.

use syscalls::Sysno;

/// The name of a system call of this architecture.
pub fn name(number: u32) -> String {
    match Sysno::new(number as usize) {
        Some(call) => call.name().to_owned(),
        None => format!("syscall {number}"),
    }
}
