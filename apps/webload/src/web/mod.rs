//! `web`: the clients of WebAxe-4, and of the static profile, before a cache or server.

mod clients;

use crate::arrivals::Spacing;
use crate::engine::{Connections, Phase, Plan};
use crate::outcome::{self, Outcome, Problem};
use crate::part::{self, LoadPart, Spread};
use crate::ports;
use crate::rate::{nanoseconds, resolve};
use crate::report::{PhaseReport, Report};
use clients::{Clients, Profile};
use std::net::SocketAddr;
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  nearmiss-webload origin --listen 127.0.0.1:8000 &
  nearmiss-webload web --proxy 127.0.0.1:8080 --rate 2000 --connections 7000 --for 5m
  nearmiss-webload web --proxy 127.0.0.1:8080 --rate 500 --connection-a-request --working-set 64MB --for 20s --json
  nearmiss-webload web --proxy 127.0.0.1:8080 --rate 3000 --phases top2 --from 240512    # after a run that filled
  nearmiss-webload web --proxy 127.0.0.1:8080 --rate 1000 --profile static --phases top1 --objects 6000";

/// The clients of WebAxe-4: phases, laws, conditions and popularity as the paper's load has them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The cache, with `nearmiss-webload origin` behind it
    #[arg(long, value_name = "HOST:PORT")]
    proxy: String,
    /// Requests a second at the peak
    #[arg(long, value_name = "RATE")]
    rate: f64,
    /// Phases, in order: fill lasts until the whole working set was requested, top1 and top2 are measured
    #[arg(long, value_enum, value_delimiter = ',', default_value = "fill,top1,top2")]
    phases: Vec<PhaseName>,
    /// How long top1 and top2 last, each (4 hours in the paper)
    #[arg(long = "for", value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "60s")]
    lasting: Duration,
    /// How long to send at the full rate before the first phase, unless that is fill; in no figure
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "2s")]
    warm_up: Duration,
    /// Requests a second while the cache fills; half the peak, where not given
    #[arg(long, value_name = "RATE")]
    fill_rate: Option<f64>,
    /// Connections at once (with --connection-a-request: at most)
    #[arg(long, value_name = "N", default_value_t = 1000)]
    connections: usize,
    /// A new connection for each request: keep-alive off
    #[arg(long)]
    connection_a_request: bool,
    /// End each kept connection after a number of requests drawn from Zipf's law over 1 to N (WebAxe-4's robots: 16);
    /// 0 keeps connections open
    #[arg(long, value_name = "N", default_value_t = 0)]
    uses: u32,
    /// Time from client to proxy and back again, each way, kept by the client's timers
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "40ms")]
    delay: Duration,
    /// Size of the working set
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1GB")]
    working_set: u64,
    /// Go on where another run ended, with its cache as it is: the `next request` that it printed
    #[arg(long, value_name = "REQUEST", default_value_t = 0)]
    from: u64,
    /// Requests to send
    #[arg(long, value_enum, default_value = "webaxe-4")]
    profile: Profile,
    /// Files of the static profile
    #[arg(long, value_name = "N", default_value_t = 6000)]
    objects: u32,
    /// Loopback source addresses, from 127.0.0.1 on
    #[arg(long, value_name = "N", default_value_t = 4)]
    sources: u32,
    /// Give a request up after this time
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "30s")]
    timeout: Duration,
    /// How long to await answers after the end
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::time, default_value = "3s")]
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
}

/// A phase of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PhaseName {
    /// The working set comes into being.
    Fill,
    /// The peak, for the first time.
    Top1,
    /// The peak, for the second time.
    Top2,
}

impl PhaseName {
    const fn text(self) -> &'static str {
        match self {
            PhaseName::Fill => "fill",
            PhaseName::Top1 => "top1",
            PhaseName::Top2 => "top2",
        }
    }
}

/// A size such as 64MB; a kilobyte has 1,024 bytes, as Web Polygraph counts.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "B" => 1,
        "KB" | "KiB" => 1 << 10,
        "MB" | "MiB" => 1 << 20,
        "GB" | "GiB" => 1 << 30,
        _ => return Err("give a size such as 64MB or 1GB".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "give a size such as 64MB or 1GB".to_owned())?;
    number.checked_mul(factor).filter(|size| *size > 0).ok_or_else(|| "this size is 0 or too large".to_owned())
}

/// Runs the verb.
pub fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    check(arguments)?;
    let to = resolve(&arguments.proxy)?;
    ports::check(to, arguments.connections, arguments.sources)?;
    let Arguments { part, processes, connections, .. } = *arguments;
    let measured = part::run(Spread { part, connections, processes }, |part| {
        let plan = plan(to, arguments, part);
        let filling = plan.phases.iter().map(|phase| phase.until_filled).collect();
        let working_set = arguments.working_set / part.of as u64;
        let mut clients = Clients::new(arguments, part, plan.seed, working_set, filling);
        clients.skip(arguments.from / part.of as u64);
        Ok((clients, plan))
    })?;
    let Some(measured) = measured else { return Ok(Outcome::Good) };
    let report = report(to, arguments, &measured);
    outcome::print(if arguments.json { report.json() } else { report.text() })?;
    Ok(report.outcome())
}

fn check(arguments: &Arguments) -> Result<(), Problem> {
    let wrong = |text: &str| Err(Problem::Input(text.to_owned()));
    let is_rate = |rate: f64| rate > 0.0 && rate <= 1e7;
    if !is_rate(arguments.rate) || !arguments.fill_rate.is_none_or(is_rate) {
        return wrong("--rate, --fill-rate: a rate is above 0 and at most 10,000,000 requests/s");
    }
    if arguments.connections == 0 || arguments.objects == 0 || !(1..=250).contains(&arguments.sources) {
        return wrong("--connections and --objects are at least 1, --sources is from 1 to 250");
    }
    if arguments.delay > Duration::from_secs(60) {
        return wrong("--delay: at most a minute each way");
    }
    if arguments.lasting.is_zero() || !(0.0..100.0).contains(&arguments.tolerance) {
        return wrong("--for is above 0, such as 60s; --tolerance is a percentage from 0 to 100");
    }
    Ok(())
}

/// Nanoseconds of the warm-up, if there is one.
fn warm_up(arguments: &Arguments) -> Option<u64> {
    let has_one = !arguments.warm_up.is_zero() && arguments.phases.first() != Some(&PhaseName::Fill);
    has_one.then(|| nanoseconds(arguments.warm_up))
}

fn plan(to: SocketAddr, arguments: &Arguments, part: LoadPart) -> Plan {
    let share = |rate: f64| rate / part.of as f64;
    let phase = |name: &PhaseName| {
        let is_fill = *name == PhaseName::Fill;
        let fill_rate = arguments.fill_rate.unwrap_or(arguments.rate / 2.0);
        Phase {
            rate: share(if is_fill { fill_rate } else { arguments.rate }),
            most_ns: if is_fill { u64::MAX } else { nanoseconds(arguments.lasting) },
            until_filled: is_fill,
        }
    };
    Plan {
        connections: Connections {
            to,
            count: part.share(arguments.connections),
            one_request_each: arguments.connection_a_request,
            sources: Connections::sources_towards(to, arguments.sources),
            most_uses: arguments.uses,
            delay_ns: nanoseconds(arguments.delay),
        },
        phases: warm_up(arguments)
            .map(|most_ns| Phase { most_ns, ..phase(&PhaseName::Top1) })
            .into_iter()
            .chain(arguments.phases.iter().map(phase))
            .collect(),
        spacing: Spacing::Poisson,
        seed: arguments.seed.wrapping_add(part.index as u64),
        timeout_ns: nanoseconds(arguments.timeout),
        grace_ns: nanoseconds(arguments.grace),
    }
}

fn notes(to: SocketAddr, arguments: &Arguments) -> Vec<String> {
    let delay = arguments.delay.as_secs_f64() * 1e3;
    let kept = if arguments.connection_a_request {
        "a request leaves a way there and back after its connection begins"
    } else {
        "a connection rests for a way there and back after each answer"
    };
    vec![
        format!("client-side delay {delay} ms each way, by the client's timers: {kept}; it is not in the times"),
        "packet loss (0.005% in the paper) is left out: there is no netem".to_owned(),
        format!("{} source addresses", Connections::sources_towards(to, arguments.sources)),
    ]
}

fn report(to: SocketAddr, arguments: &Arguments, measured: &part::Measured) -> Report {
    let tolerance = arguments.tolerance / 100.0;
    let fill_rate = arguments.fill_rate.unwrap_or(arguments.rate / 2.0);
    let lead = usize::from(warm_up(arguments).is_some());
    let phase = |(name, measure): (&PhaseName, _)| {
        let is_fill = *name == PhaseName::Fill;
        let rate = if is_fill { fill_rate } else { arguments.rate };
        PhaseReport::of(name.text(), !is_fill, rate, measure, tolerance)
    };
    let keep_alive = if arguments.connection_a_request { "off" } else { "on" };
    let profile = match arguments.profile {
        Profile::WebAxe4 => format!("WebAxe-4, working set {} bytes", arguments.working_set),
        Profile::Static => format!("static profile, {} files", arguments.objects),
    };
    Report {
        version: 1,
        figures: "measured",
        load: format!("{profile}, {} at {} requests/s, keep-alive {keep_alive}", arguments.proxy, arguments.rate),
        seed: arguments.seed,
        next_request: Some(arguments.from + measured.phases.iter().map(|phase| phase.counts.due).sum::<u64>()),
        connections: arguments.connections,
        processes: measured.processes,
        descriptors_per_process: measured.descriptors,
        notes: notes(to, arguments),
        phases: arguments.phases.iter().zip(&measured.phases[lead..]).map(phase).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!((bytes("1GB"), bytes("64MB"), bytes("7")), (Ok(1 << 30), Ok(64 << 20), Ok(7)));
        assert!(["", "GB", "0MB", "1TB", "-1MB", "99999999999999GB"].iter().all(|text| bytes(text).is_err()));
    }
}
