//! Options for the part of a command's run that is recorded.

use nearmiss_tap::window::{Length, Mark, Start, Window};

/// The window; without options the whole command.
#[derive(Clone, Default, clap::Args)]
pub struct WindowArgs {
    /// Record from here on: `mark:N` (NEARMISS_MARK(N) of nearmiss.h), `time:DURATION` after the command began, or
    /// `symbol:NAME[@MODULE]`, the first execution of a function [default: the command's first instruction]
    #[arg(long, value_name = "POINT", help_heading = "Window")]
    from: Option<Start>,
    /// Record for so long: a time of this machine's clock such as 2s, or instructions of all CPUs together such as
    /// `50Minsn`; the command is then ended
    #[arg(long = "for", value_name = "DURATION|Ninsn", help_heading = "Window")]
    length: Option<Length>,
    /// Record until the program executes this mark, `mark:N`; the command is then ended
    #[arg(long, value_name = "MARK", help_heading = "Window")]
    until: Option<Mark>,
}

impl WindowArgs {
    /// Whether any of the options is given.
    pub fn is_given(&self) -> bool {
        self.from.is_some() || self.length.is_some() || self.until.is_some()
    }

    /// Returns the requested window.
    pub fn window(&self) -> Window {
        Window { from: self.from.clone().unwrap_or_default(), length: self.length, until: self.until }
    }
}
