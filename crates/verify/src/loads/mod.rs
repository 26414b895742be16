//! Reads the output of well-known loads, and of other loads as the user specifies.

use crate::metric::Take;
use crate::{Better, Error, Printed};
use nearmiss_workload::Status;

/// A load by its output. Empty expressions: the output lacks the figure.
struct KnownLoad {
    name: &'static str,
    /// Sign that only its output has.
    sign: &'static str,
    /// Statuses of a run with whole figures that missed its rate or had wrong answers.
    missed: &'static [u8],
    /// Units of work that were done.
    work: (&'static str, Take),
    /// Units a second that it tried to get done.
    offered: &'static str,
    /// Units a second that were done.
    achieved: (&'static str, Take),
    /// Units that failed.
    errors: &'static str,
    /// A line printed where the load sent late by its own fault, so that its times measure little of the server.
    behind: &'static str,
    /// Other figures by name; less is better.
    figures: &'static [(&'static str, &'static str)],
}

const NOTHING: (&str, Take) = ("", Take::Last);

/// Several tests of one run of `redis-benchmark` count together: their requests are added up, their rates and times
/// averaged.
const KNOWN: &[KnownLoad] = &[
    KnownLoad {
        name: "nearmiss-webload",
        sign: r"(?m)^offered [0-9.]+ requests/s$",
        missed: &[3, 4],
        work: (r"(?m)^requests ([0-9]+)$", Take::Last),
        offered: r"(?m)^offered ([0-9.]+) requests/s$",
        achieved: (r"(?m)^achieved ([0-9.]+) requests/s$", Take::Last),
        errors: r"(?m)^errors ([0-9]+)$",
        behind: "generator FELL BEHIND",
        figures: &[("mean_ms", r"(?m)^mean ([0-9.]+) (us|ms|s)$"), ("p99_ms", r"(?m)^p99 ([0-9.]+) (us|ms|s)$")],
    },
    KnownLoad {
        name: "h2load",
        sign: r"(?m)^requests: [0-9]+ total, [0-9]+ started, [0-9]+ done, ",
        missed: &[],
        work: (r"(?m)^requests: .* ([0-9]+) succeeded", Take::Last),
        offered: "",
        achieved: (r"(?m)^finished in [^,]+, ([0-9.]+) req/s", Take::Last),
        errors: r"(?m)^requests: .* ([0-9]+) failed",
        behind: "",
        figures: &[("mean_ms", r"(?m)^time for request: +\S+ +\S+ +([0-9.]+)(us|ms|s) ")],
    },
    KnownLoad {
        name: "wrk",
        sign: r"(?m)^ +[0-9]+ requests in [0-9.]+(?:us|ms|s|m|h), ",
        missed: &[],
        work: (r"(?m)^ +([0-9]+) requests in ", Take::Last),
        offered: "",
        achieved: (r"(?m)^Requests/sec: +([0-9.]+)$", Take::Last),
        errors: "",
        behind: "",
        figures: &[("mean_ms", r"(?m)^ +Latency +([0-9.]+)(us|ms|s) "), ("p99_ms", r"(?m)^ +99% +([0-9.]+)(us|ms|s)$")],
    },
    KnownLoad {
        name: "httperf",
        sign: r"(?m)^Total: connections [0-9]+ requests [0-9]+ replies [0-9]+ test-duration ",
        missed: &[],
        work: (r"(?m)^Total: .* replies ([0-9]+) ", Take::Last),
        // Connections a second, as is the rate that it achieves; `--rate=0` is a closed loop.
        offered: r"--rate=([0-9.]*[1-9][0-9.]*)",
        achieved: (r"(?m)^Connection rate: ([0-9.]+) conn/s", Take::Last),
        errors: r"(?m)^Errors: total ([0-9]+) ",
        behind: "",
        figures: &[("mean_ms", r"(?m)^Reply time \[ms\]: response ([0-9.]+) ")],
    },
    KnownLoad {
        name: "redis-benchmark",
        sign: r"(?m)^ +[0-9]+ requests completed in [0-9.]+ seconds",
        missed: &[],
        work: (r"(?m)^ +([0-9]+) requests completed in ", Take::Sum),
        offered: "",
        achieved: (r"throughput summary: ([0-9.]+) requests per second", Take::Mean),
        errors: "",
        behind: "",
        figures: &[
            ("mean_ms", r"(?m)^ +avg +min +p50 +p95 +p99 +max *\n +([0-9.]+) "),
            ("p99_ms", r"(?m)^ +avg +min +p50 +p95 +p99 +max *\n(?: +[0-9.]+){4} +([0-9.]+) "),
        ],
    },
    KnownLoad {
        name: "redis-benchmark --csv",
        sign: r#"(?m)^"test","rps","avg_latency_ms","#,
        missed: &[],
        work: NOTHING,
        offered: "",
        achieved: (r#"(?m)^"[^"]*","([0-9.]+)","#, Take::Mean),
        errors: "",
        behind: "",
        figures: &[
            ("mean_ms", r#"(?m)^"[^"]*","[0-9.]+","([0-9.]+)""#),
            ("p99_ms", r#"(?m)^"[^"]*"(?:,"[0-9.]+"){5},"([0-9.]+)""#),
        ],
    },
    KnownLoad {
        name: "redis-benchmark -q",
        sign: r"[0-9.]+ requests per second, p50=[0-9.]+ msec",
        missed: &[],
        work: NOTHING,
        offered: "",
        achieved: (r"([0-9.]+) requests per second, p50=", Take::Mean),
        errors: "",
        behind: "",
        figures: &[("p50_ms", r" requests per second, p50=([0-9.]+) msec")],
    },
    KnownLoad {
        name: "memtier_benchmark",
        sign: r"Avg\. Latency +p50 Latency +p99 Latency +p99\.9 Latency +KB/sec",
        missed: &[],
        work: (r"([0-9]+) ops, ", Take::Last),
        offered: "",
        achieved: (r"(?m)^Totals +([0-9.]+) ", Take::Last),
        errors: "",
        behind: "",
        figures: &[
            ("mean_ms", r"(?m)^Totals .* ([0-9.]+)(?: +[0-9.]+){4} *$"),
            ("p99_ms", r"(?m)^Totals .* ([0-9.]+)(?: +[0-9.]+){2} *$"),
        ],
    },
];

/// Units of work of a run.
pub(crate) const WORK: &str = "requests";
pub(crate) const OFFERED: &str = "offered_per_s";
pub(crate) const ACHIEVED: &str = "achieved_per_s";
pub(crate) const ERRORS: &str = "errors";
/// Runs have this figure in which the load fell behind.
pub(crate) const BEHIND: &str = "load_fell_behind";
/// Figures that show whether the two sides did the same work.
pub(crate) const CONDITIONS: [&str; 5] = [WORK, OFFERED, ACHIEVED, ERRORS, BEHIND];

/// A rate that a load offers.
#[derive(Clone, Debug)]
pub enum Offered {
    /// The load prints the rate.
    Printed(Printed),
    /// The user gives the rate.
    Given(f64),
}

/// Figures to read from a load's output; `None` and empty: those of a known load.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Units of work that were done.
    pub work: Option<Printed>,
    /// Units a second that the load tried to get done.
    pub offered: Option<Offered>,
    /// Units a second that were done.
    pub achieved: Option<Printed>,
    /// Units that failed.
    pub errors: Option<Printed>,
    /// The line that a load prints which sent late by its own fault.
    pub behind: Option<&'static str>,
    /// Figures that get a verdict of their own.
    pub figures: Vec<Printed>,
}

impl Reading {
    /// Returns the figures that the user specifies, and those of a known load beside them. The output is of the load's
    /// first run: figures that are missing in it are not looked for later.
    pub(crate) fn of(requested: &Reading, output: &str) -> Result<Reading, Error> {
        let mut reading = requested.clone();
        let Some(known) = known(output)? else { return Ok(reading) };
        let printed = |name: &str, expression: &str, take| printed(known, name, expression, take, output);
        reading.work = reading.work.or(printed(WORK, known.work.0, known.work.1)?);
        let offered = printed(OFFERED, known.offered, Take::Last)?;
        reading.offered = reading.offered.or(offered.map(Offered::Printed));
        reading.achieved = reading.achieved.or(printed(ACHIEVED, known.achieved.0, known.achieved.1)?);
        reading.errors = printed(ERRORS, known.errors, Take::Last)?;
        reading.behind = Some(known.behind).filter(|line| !line.is_empty());
        // Verdicts are about the figures that the user names.
        if reading.figures.is_empty() {
            for (name, expression) in known.figures {
                reading.figures.extend(printed(name, expression, Take::Mean)?);
            }
        }
        Ok(reading)
    }

    /// The figures of a run, by name. Errors: what is missing.
    pub(crate) fn figures(&self, output: &str) -> Result<Vec<(String, f64)>, String> {
        let named = [(WORK, &self.work), (ACHIEVED, &self.achieved), (ERRORS, &self.errors)];
        let mut figures = Vec::new();
        for (name, printed) in named {
            figures.extend(printed.as_ref().map(|p| Ok::<_, String>((name.to_owned(), p.find(output)?))).transpose()?);
        }
        match &self.offered {
            Some(Offered::Printed(printed)) => figures.push((OFFERED.to_owned(), printed.find(output)?)),
            Some(Offered::Given(rate)) => figures.push((OFFERED.to_owned(), *rate)),
            None => {}
        }
        for printed in &self.figures {
            figures.push((printed.name.clone(), printed.find(output)?));
        }
        let is_behind = self.behind.is_some_and(|notice| output.lines().any(|line| line == notice));
        figures.extend(is_behind.then(|| (BEHIND.to_owned(), 1.0)));
        Ok(figures)
    }

    /// Whether a figure gives the work of a run.
    pub(crate) fn has_work(&self) -> bool {
        self.work.is_some() || self.achieved.is_some()
    }

    /// The figures with a verdict of their own, and which way each is better.
    pub(crate) fn judged(&self) -> Vec<(String, Better)> {
        let figures = self.figures.iter().map(|printed| (printed.name.clone(), printed.better));
        // The rate of a load that offers one is a condition and no result.
        let rate = self.achieved.is_some() && self.offered.is_none();
        figures.chain(rate.then(|| (ACHIEVED.to_owned(), Better::Higher))).collect()
    }
}

fn known(output: &str) -> Result<Option<&'static KnownLoad>, Error> {
    for known in KNOWN {
        if Printed::new(known.name, known.sign, Better::Lower)?.expression.is_match(output) {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

/// Whether a load that ended with this status printed its figures all the same: the rates then show what was missed.
pub(crate) fn has_printed_figures(status: Status, output: &str) -> bool {
    let Status::Exited(code) = status else { return false };
    known(output).is_ok_and(|known| known.is_some_and(|known| known.missed.contains(&code)))
}

fn printed(
    known: &KnownLoad,
    name: &str,
    expression: &str,
    take: Take,
    output: &str,
) -> Result<Option<Printed>, Error> {
    if expression.is_empty() {
        return Ok(None);
    }
    let printed = Printed::new(known.name, expression, Better::Lower)?.named(name);
    Ok(Some(Printed { take, ..printed }).filter(|printed| printed.find(output).is_ok()))
}

#[cfg(test)]
mod tests;
