//! Options of a server under a load, for all verbs that run one.

use crate::command_line::{direct, shell};
use nearmiss_workload::{Error, Load, Ready};
use std::time::Duration;

/// The load, and what tells that the server answers.
#[derive(clap::Args)]
pub struct LoadArgs {
    /// CMD is a server: start it, wait until it answers, run this load against it, and stop it. The load is one string,
    /// split as a shell does
    #[arg(long, value_name = "LOAD", help_heading = "Servers")]
    load: Option<String>,
    /// The server answers when it takes a connection here [default: when it listens on a TCP or Unix socket]
    #[arg(long, value_name = "HOST:PORT|PATH", requires = "load", help_heading = "Servers")]
    ready: Option<Ready>,
    /// The server has this long until it answers
    #[arg(long, value_name = "TIME", requires = "load", default_value = "10s", value_parser = humantime::parse_duration, help_heading = "Servers")]
    ready_within: Duration,
}

impl LoadArgs {
    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.load.is_some()
    }

    /// The load, if there is one; it may last as long as it likes. Errors: its program is not there.
    pub fn load(&self) -> Result<Option<Load>, Error> {
        let Some(command) = &self.load else { return Ok(None) };
        let workload = direct(command).unwrap_or_else(|| shell(command));
        workload.program()?;
        Ok(Some(Load {
            workload,
            ready: self.ready.clone().unwrap_or_default(),
            ready_within: self.ready_within,
            limit: None,
        }))
    }
}
