//! Options of a server under a load, for all verbs that run one.

use crate::command_line::{direct, shell};
use clap::builder::NonEmptyStringValueParser;
use nearmiss_workload::{Error, Load, Ready};
use std::ffi::OsString;
use std::time::Duration;

/// A server answers within this time, or something is wrong.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Time to answer where the server's code is translated, and slowed down.
const READY_WITHIN_IN_THE_GUEST: Duration = Duration::from_secs(300);

/// The load, and the sign that the server answers.
#[derive(Clone, Default, clap::Args)]
pub struct LoadArgs {
    /// CMD is a server: start it, wait until it answers, run this load against it, and stop it. The load is one string,
    /// split as a shell does
    #[arg(long, value_name = "LOAD", value_parser = NonEmptyStringValueParser::new(), help_heading = "Servers")]
    load: Option<String>,
    /// The server answers when it takes a connection here [default: when it listens, or takes datagrams alone]
    #[arg(long, value_name = "HOST:PORT|PATH", requires = "load", help_heading = "Servers")]
    ready: Option<Ready>,
    /// The server has this long until it answers [default: 10s; in the guest 5m]
    #[arg(long, value_name = "TIME", requires = "load", value_parser = nearmiss_usage::some_time, help_heading = "Servers")]
    ready_within: Option<Duration>,
}

impl LoadArgs {
    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.load.is_some()
    }

    /// The load as given.
    pub fn command(&self) -> Option<&str> {
        self.load.as_deref()
    }

    /// The options again, for the guest; none without a load.
    pub fn words(&self) -> Vec<OsString> {
        if !self.is_given() {
            return Vec::new();
        }
        let within = self.ready_within.unwrap_or(READY_WITHIN_IN_THE_GUEST);
        let ready = match &self.ready {
            None | Some(Ready::Listens) => None,
            Some(Ready::Tcp(address)) => Some(OsString::from(address)),
            Some(Ready::Unix(path)) => Some(path.clone().into_os_string()),
        };
        let load = self.load.as_ref().map(OsString::from);
        let within = OsString::from(humantime::format_duration(within).to_string());
        let options = [("--load", load), ("--ready", ready), ("--ready-within", Some(within))];
        options.into_iter().filter_map(|(name, value)| Some([name.into(), value?])).flatten().collect()
    }

    /// The load, if there is one; it may last as long as it likes. Errors: its program is not there.
    pub fn load(&self) -> Result<Option<Load>, Error> {
        let Some(command) = &self.load else { return Ok(None) };
        let workload = direct(command).unwrap_or_else(|| shell(command));
        workload.program()?;
        Ok(Some(Load {
            workload,
            ready: self.ready.clone().unwrap_or_default(),
            ready_within: self.ready_within.unwrap_or(READY_WITHIN),
            limit: None,
        }))
    }
}
