//! The binary `nearmiss`.

use std::process::ExitCode;

fn main() -> ExitCode {
    nearmiss_cli::run(nearmiss_remedies::REMEDIES)
}
