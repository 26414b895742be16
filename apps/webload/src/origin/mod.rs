//! `origin`: the origin of WebAxe-4. All properties of an object follow from the object's name.

mod answer;
mod connection;
mod server;

#[cfg(test)]
pub use answer::read as read_request;

use crate::outcome::{self, Outcome, Problem};
use crate::rate::resolve;
use crate::socket;
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  nearmiss-webload origin --listen 127.0.0.1:8000
  nearmiss-webload origin --delay 0s                   # answers at once, on a free port
Names: /w0/image/1.png, /w0/html/1.html, /w0/download/1.zip, /w0/other/1.bin (WebAxe-4: sizes and cachability by
the laws); /fixed/4096/1 (4,096 bytes, cachable); /files/1.dat (the static profile); /webload/counts (JSON)";

/// The origin behind a cache: the size, type, dates, cachability and content of each object follow from its name
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Address to listen on; port 0 takes a free one, and the first line of the output names it
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// Mean time that an answer takes
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "300ms")]
    delay: Duration,
    /// Standard deviation of that time, at most the mean
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "100ms")]
    deviation: Duration,
    /// Seconds for which caches may keep cachable objects
    #[arg(long, value_name = "SECONDS", default_value_t = 604_800)]
    max_age: u64,
    /// Seed of the times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Runs the verb; it ends with the process.
pub fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    let address = resolve(&arguments.listen)?;
    socket::descriptors();
    let thinking = server::Thinking {
        mean_ns: arguments.delay.as_nanos() as f64,
        deviation_ns: arguments.deviation.min(arguments.delay).as_nanos() as f64,
        seed: arguments.seed,
    };
    let cannot = |error| Problem::Run(format!("{address}: cannot listen ({error}); choose another --listen"));
    let mut server = server::Server::new(address, thinking, arguments.max_age).map_err(cannot)?;
    outcome::print(format_args!("listening {}\n", server.address().map_err(cannot)?))?;
    server.run().map_err(|error| Problem::Run(format!("the origin ended: {error}")))?;
    Ok(Outcome::Good)
}
