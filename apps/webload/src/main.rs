//! `nearmiss-webload`: an open-loop load for servers, and an origin to stand behind them.

use std::process::ExitCode;

fn main() -> ExitCode {
    nearmiss_webload::run()
}
