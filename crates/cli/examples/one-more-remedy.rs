//! nearmiss with one remedy more: everything that a remedy is lies in this file, and no other file knows of it.
//!
//! The remedy, `nap`, is a simulation that changes nothing: it takes an observation, not a trace; it has an option and a
//! parameter of its own; a helper process runs beside the command; and its evidence is about poll calls, not about caches.

use clap::{Arg, ArgMatches, Command};
use nearmiss_analysis::{
    Ability, Acts, Applied, CannotEngage, Case, CaseError, Engaged, Engagement, Help, Needs, NotEngaged, Parameter,
    RehearsalRequest, Remedy, Suspicion, Suspicions, Value,
};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Base, Evidence, EvidenceKind, EvidenceLine, Finding, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_remedies::REMEDIES;
use nearmiss_workload::{Running, Stdio, Workload};
use std::process::ExitCode;
use std::time::Duration;

static NAP: Remedy = Remedy {
    name: "nap",
    summary: "lets pollers sleep a little between calls",
    apply_help: Help {
        about: "Let pollers sleep a little between calls",
        after: "Examples:\n  nearmiss apply nap --least 200us -- ./server   naps of 200 µs",
    },
    verify_help: Help { about: "Do naps help?", after: "Examples:\n  nearmiss verify nap -- ./server" },
    rehearse_help: Help {
        about: "The log of polls under longer and longer naps",
        after: "Examples:\n  nearmiss rehearse nap --naps 100us,1ms",
    },
    needs: Needs::Observation,
    options: |command: Command| {
        command.arg(Arg::new("least").long("least").value_name("TIME").default_value("1ms").help("The least nap"))
    },
    parameter: Parameter {
        name: "naps",
        value_name: "TIME,…",
        help: "Naps to try [default: 1ms]",
        parse: |text| {
            let time = humantime::parse_duration(text).map_err(|error| format!("`{text}`: {error}"))?;
            Ok(Value::Number(time.as_nanos() as u64))
        },
    },
    limit: None,
    detect,
    nothing_found: "no thread polls in vain",
    apply,
    attach: None,
    records: &[],
    title: |given| format!("nap, at least {}", least(given)),
    abilities: || vec![Ability { name: "helper process", state: Ok("sleep is there".to_owned()) }],
};

fn least(given: &ArgMatches) -> &str {
    given.get_one::<String>("least").map_or("", String::as_str)
}

/// A thread with polls that bring few events.
struct Poller {
    thread: String,
    calls: u64,
    events_per_call: f64,
}

fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let polls = &case.observation()?.observed().polls;
    let poller = |poll: &nearmiss_record::observed::Poll| Poller {
        thread: poll.name.clone(),
        calls: poll.calls,
        events_per_call: poll.events as f64 / poll.calls.max(1) as f64,
    };
    let few = polls.iter().map(poller).filter(|poller| poller.events_per_call < 2.0);
    Ok(few.map(|poller| Box::new(poller) as Box<dyn Suspicion>).collect())
}

impl Poller {
    fn table(&self, title: &str, naps: &[u64]) -> Table {
        let row = |nap: &u64| vec![Cell::Nanos(*nap), Cell::Count(self.calls * 1_000 / (nap / 1_000).max(1))];
        Table {
            title: title.to_owned(),
            columns: vec!["nap".to_owned(), "calls".to_owned()],
            rows: naps.iter().map(row).collect(),
        }
    }
}

impl Suspicion for Poller {
    fn most_gain(&self) -> f64 {
        0.5
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let command = &case.observation()?.manifest().command;
        let line = |verb: &str| {
            let words = ["nearmiss", verb, NAP.name, "--least", "1ms", "--"].map(str::to_owned);
            Some(words.iter().chain(command).cloned().collect())
        };
        let text = format!("{} calls of `{}` bring {:.1} events each.", self.calls, self.thread, self.events_per_call);
        Ok(Finding {
            remedy: NAP.name.to_owned(),
            known: EvidenceKind::Measured,
            symptom: format!("`{}` polls in vain", self.thread),
            cause: "Each call returns as soon as one descriptor is ready.".to_owned(),
            evidence: Evidence {
                lines: vec![EvidenceLine { label: "Calls".to_owned(), text }],
                tables: vec![self.table("calls by nap", &[1_000_000])],
                most_gain: self.most_gain(),
            },
            treatment: "Naps of 1 ms".to_owned(),
            reach: Reach::Outside,
            prediction: Prediction {
                gain: 0.25,
                low: 0.2,
                high: 0.3,
                of: Base::other("the CPU time"),
                ..Prediction::default()
            },
            unless: vec!["somebody waits for each event".to_owned()],
            apply: line("apply"),
            verify: line("verify"),
        })
    }

    fn rehearse(&self, _: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let naps = request.numbers();
        Ok(Rehearsal {
            remedy: NAP.name.to_owned(),
            subject: format!("polls of `{}`", self.thread),
            basis: "from the sums of the log".to_owned(),
            placements: Vec::new(),
            table: self.table("rehearsal", if naps.is_empty() { &[1_000_000] } else { &naps }),
            more: Vec::new(),
        })
    }
}

/// The helper beside one launch of the command.
struct Napping {
    helper: Option<Running>,
}

fn apply(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    let workload = workload.env("NAP", least(given));
    Ok(Applied { workload, engagement: Box::new(Napping { helper: None }) })
}

impl Engagement for Napping {
    fn started(&mut self, _: i32) -> Result<(), CannotEngage> {
        let helper = Workload::new(["sleep", "1000"]).stdin(Stdio::Null).stdout(Stdio::Null).stderr(Stdio::Null);
        self.helper = Some(helper.launch_suspended()?.resume()?);
        Ok(())
    }

    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        let missing = || NotEngaged { pid, why: "its helper was not there".to_owned() };
        let helper = self.helper.take().ok_or_else(missing)?;
        let text = format!("nap (measured): helper {} ran beside {pid}", helper.pid());
        helper.terminate(Duration::from_secs(1)).map_err(|_| missing())?;
        Ok(Engaged { text, acts: Acts::Uncounted, record: serde_json::json!({"schema": "nearmiss/nap-applied/1"}) })
    }
}

fn main() -> ExitCode {
    let remedies = REMEDIES.iter().copied().chain([&NAP]).collect::<Vec<_>>();
    nearmiss_cli::run(remedies.leak())
}
