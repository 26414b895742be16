//! How most of these tests diagnose a command.

/// The words ahead of a command of which all of the user mode is recorded.
pub fn in_user_mode<'a>(machine: &'a str, cpus: &'a str) -> [&'a str; 13] {
    ["diagnose", "--within", "0", "--json", "-m", machine, "--memory", "1GiB", "--cpus", cpus, "--only", "user", "--"]
}
