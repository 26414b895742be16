//! `rate`: requests of one kind at a fixed rate.

mod http;
mod store;

use crate::arrivals::Spacing;
use crate::engine::{Connections, Phase, Plan};
use crate::load::Load;
use crate::outcome::{self, Outcome, Problem};
use crate::part::{self, LoadPart, Spread};
use crate::ports;
use crate::report::{PhaseReport, Report};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;
use store::{Dialect, Keys};

/// Protocol of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Protocol {
    /// HTTP/1.1.
    Http,
    /// Redis: GET and SET.
    Resp,
    /// memcached's text protocol: get and set.
    Memcached,
}

const EXAMPLES: &str = "Examples:
  nearmiss-webload rate --rps 5000 --connections 300 --for 10s http://127.0.0.1:8080/index.html
  nearmiss-webload rate --rps 3000 --connection-a-request http://127.0.0.1:8080/
  nearmiss-webload rate --rps 9000 --objects 1000 http://127.0.0.1:8080/fixed/4096/{}
  nearmiss-webload rate --rps 5000 --protocol resp --sets 10 127.0.0.1:6379
  nearmiss-webload rate --rps 5000 --protocol memcached --json 127.0.0.1:11211";

/// Requests at a fixed rate, which no slow answer lowers; times run from the instant at which a request was due
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Requests a second
    #[arg(long, value_name = "RATE")]
    rps: f64,
    /// Connections at once (with --connection-a-request: at most)
    #[arg(long, value_name = "N", default_value_t = 100)]
    connections: usize,
    /// How long to measure
    #[arg(long = "for", value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "10s")]
    lasting: Duration,
    /// How long to send at the full rate before measuring
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "1s")]
    warm_up: Duration,
    /// The protocol
    #[arg(long, value_enum, default_value = "http")]
    protocol: Protocol,
    /// Equal intervals instead of exponential ones
    #[arg(long)]
    even: bool,
    /// A new connection for each request
    #[arg(long)]
    connection_a_request: bool,
    /// Objects (HTTP: {} in the URL becomes a number below N) or keys
    #[arg(long, value_name = "N", default_value_t = 1000)]
    objects: u32,
    /// RESP and memcached: percentage of requests that write
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    sets: f64,
    /// RESP and memcached: bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    value_bytes: u32,
    /// HTTP: fail where an answer differs from the first one
    #[arg(long)]
    same_body: bool,
    /// Loopback source addresses, from 127.0.0.1 on
    #[arg(long, value_name = "N", default_value_t = 1)]
    sources: u32,
    /// Give a request up after this time
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "10s")]
    timeout: Duration,
    /// How long to await answers after the end
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "2s")]
    grace: Duration,
    /// How much of the rate may be missed
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    tolerance: f64,
    /// Processes to split the load over; as many as the limit on descriptors needs, where not given
    #[arg(long, value_name = "N")]
    processes: Option<usize>,
    /// The part that this process is
    #[arg(long, hide = true)]
    part: Option<LoadPart>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The URL, or HOST:PORT
    #[arg(value_name = "URL|HOST:PORT")]
    server: String,
}

/// Runs the verb.
pub fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    check(arguments)?;
    match arguments.protocol {
        Protocol::Http => {
            let url = http::Url::read(&arguments.server)?;
            let to = resolve(&url.authority)?;
            ports::check(to, arguments.connections, arguments.sources)?;
            measure(to, arguments, |seed| http::Requests::new(&url, to, arguments, seed))
        }
        Protocol::Resp => measure_store(Dialect::Resp, arguments),
        Protocol::Memcached => measure_store(Dialect::Memcached, arguments),
    }
}

fn measure_store(dialect: Dialect, arguments: &Arguments) -> Result<Outcome, Problem> {
    let to = resolve(&arguments.server)?;
    ports::check(to, arguments.connections, arguments.sources)?;
    if arguments.part.is_none() {
        Keys::new(dialect, arguments, 0).prime(to)?;
    }
    measure(to, arguments, |seed| Ok(Keys::new(dialect, arguments, seed)))
}

fn check(arguments: &Arguments) -> Result<(), Problem> {
    let wrong = |text: &str| Err(Problem::Input(text.to_owned()));
    if !(arguments.rps > 0.0 && arguments.rps <= 1e7) {
        return wrong("--rps: a rate is above 0 and at most 10,000,000 requests/s");
    }
    if arguments.connections == 0 || arguments.objects == 0 || arguments.sources == 0 {
        return wrong("--connections, --objects and --sources are at least 1");
    }
    if arguments.sources > 250 {
        return wrong("--sources: at most 250 loopback addresses");
    }
    if arguments.objects > 99_999_999 || arguments.value_bytes > 1 << 20 {
        return wrong("--objects: at most 99,999,999; --value-bytes: at most 1 MiB");
    }
    if !(0.0..=100.0).contains(&arguments.sets) || !(0.0..100.0).contains(&arguments.tolerance) {
        return wrong("--sets and --tolerance are percentages: 0 to 100");
    }
    if arguments.lasting.is_zero() {
        return wrong("--for: give a time above 0, such as 10s");
    }
    Ok(())
}

/// The address of `HOST:PORT`.
pub fn resolve(authority: &str) -> Result<SocketAddr, Problem> {
    let wrong = |why: String| Problem::Input(format!("{authority}: {why}; give HOST:PORT, such as 127.0.0.1:8080"));
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    if authority.contains('/') || port.is_none() {
        return Err(wrong("a port up to 65535 must stand behind the host, and no scheme before it".to_owned()));
    }
    let mut addresses = authority.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    addresses.next().ok_or_else(|| wrong("there is no such host".to_owned()))
}

/// Returns the nanoseconds of a duration, at most `u64::MAX`.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn plan(to: SocketAddr, arguments: &Arguments, part: LoadPart) -> Plan {
    let rate = arguments.rps / part.of as f64;
    let phase = |duration| Phase { rate, most_ns: nanoseconds(duration), until_filled: false };
    Plan {
        connections: Connections {
            to,
            count: part.share(arguments.connections),
            one_request_each: arguments.connection_a_request,
            sources: Connections::sources_towards(to, arguments.sources),
            most_uses: 0,
            delay_ns: 0,
        },
        phases: vec![phase(arguments.warm_up), phase(arguments.lasting)],
        spacing: if arguments.even { Spacing::Even } else { Spacing::Poisson },
        seed: arguments.seed.wrapping_add(part.index as u64),
        timeout_ns: nanoseconds(arguments.timeout),
        grace_ns: nanoseconds(arguments.grace),
    }
}

fn measure<L: Load>(
    to: SocketAddr,
    arguments: &Arguments,
    make: impl FnOnce(u64) -> Result<L, Problem>,
) -> Result<Outcome, Problem> {
    let Arguments { part, processes, connections, .. } = *arguments;
    let measured = part::run(Spread { part, connections, processes }, |part| {
        let plan = plan(to, arguments, part);
        Ok((make(plan.seed)?, plan))
    })?;
    let Some(measured) = measured else { return Ok(Outcome::Good) };
    let figures = measured.phases.last().ok_or_else(|| Problem::Run("there is no phase".to_owned()))?;
    let spacing = if arguments.even { "even" } else { "Poisson" };
    let name = format!("{:?}", arguments.protocol).to_lowercase();
    let report = Report {
        version: 1,
        figures: "measured",
        load: format!("{name} {} at {} requests/s, {spacing} arrivals", arguments.server, arguments.rps),
        seed: arguments.seed,
        next_request: None,
        connections,
        processes: measured.processes,
        descriptors_per_process: measured.descriptors,
        notes: Vec::new(),
        phases: vec![PhaseReport::of("measured", true, arguments.rps, figures, arguments.tolerance / 100.0)],
    };
    outcome::print(if arguments.json { report.json() } else { report.text() })?;
    Ok(report.outcome())
}
