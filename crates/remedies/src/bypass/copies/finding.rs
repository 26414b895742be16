//! From groups of copies to a finding: what happens, why, what to do, what it would gain.

use super::advice::{Against, LEAST_COPY_BYTES, SOON, against};
use super::apply::MOST_SITES;
use super::blame::{Blame, Costs};
use super::costs::{CopyCosts, PLACEMENTS, line_bytes, policy, table};
use super::every;
use super::find::groups;
use super::group::Group;
use super::sight::CopyCounts;
use super::site::Site;
use super::way::Ways;
use crate::command_line::command_line;
use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Suspicion, Traced, Unrehearsed, Value};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Base, Evidence, EvidenceKind, EvidenceLine, Finding, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{bytes, counted, grouped, listed, percent};

/// Most groups that are rehearsed, those that could save most.
const MOST_GROUPS: usize = 6;
/// Least own gain of a group; a group with a smaller one is left as it is.
const LEAST_OWN_GAIN: f64 = 0.005;
/// The usual least size of a copy; the command names another where a group's copies are smaller.
const USUAL_LEAST_BYTES: u64 = 4096;

/// The copies of a run, within a preloaded library's reach or not.
pub(super) struct Copying {
    /// Rehearsed groups; those that could save most first.
    groups: Vec<Group>,
    /// Groups that are not rehearsed.
    rest: Vec<Group>,
    most_gain: f64,
}

impl Copying {
    pub fn new(case: &Traced, mut groups: Vec<Group>) -> Self {
        groups.sort_by_key(|group| std::cmp::Reverse(group.blamed_cycles));
        let mut rest = groups.split_off(groups.len().min(MOST_GROUPS));
        let share = |cycles: u64| cycles as f64 / case.model.totals.cycles.max(1) as f64;
        let mut all = Blame::default();
        all.extend(groups.iter().map(|group| &group.blame));
        let most = Costs::of(case, Ways { symbols: &case.symbols, contexts: &case.side.contexts }).most(&all);
        // A group that cannot be worth it need not be replayed to be left out.
        let worth_it = groups.iter().filter(|group| share(group.blamed_cycles) >= LEAST_OWN_GAIN).count();
        if !case.thorough {
            rest.extend(groups.split_off(worth_it.max(1).min(groups.len())));
        }
        Copying { groups, rest, most_gain: share(most).min(1.0) }
    }

    /// Returns the evidence that the C library's own threshold would do, where it would.
    fn by_size(&self, judged: &RehearsedGroups<'_>) -> Option<EvidenceLine> {
        let chosen: Vec<&Group> = judged.chosen().filter(|one| one.is_worth_it()).map(|one| one.group).collect();
        let least = every::threshold(&chosen, self.groups.iter().chain(&self.rest))?;
        let text = format!(
            "All copies of {} and more are these: `nearmiss apply bypass --copies --every-copy --min {least} -- CMD` takes \
             them past the caches without a library, in a static program too.",
            bytes(least)
        );
        Some(EvidenceLine::new("By size", text))
    }

    /// Rehearses each group alone on one placement of pages, then those together that gain by themselves, on all
    /// placements; of none, the best one, which needs no more.
    fn judge(&self, case: &Traced) -> Result<RehearsedGroups<'_>, CaseError> {
        let each = CopyCosts::new(case, self.groups.iter().map(|group| policy([group])), 1)?;
        let line_bytes = line_bytes(case);
        let all: Vec<One<'_>> = self
            .groups
            .iter()
            .enumerate()
            .map(|(at, group)| One {
                group,
                gain: each.gain(at + 1).0,
                savings: (0..case.machine().levels()).map(|level| each.savings(at + 1, level)).collect(),
                against: against(group, line_bytes),
            })
            .collect();
        let chosen = choose(&all);
        let (together, at) = match chosen.as_slice() {
            [best] if !all[*best].is_worth_it() => (each, best + 1),
            _ => (CopyCosts::new(case, [policy(chosen.iter().map(|at| all[*at].group))], PLACEMENTS)?, 1),
        };
        Ok(RehearsedGroups { all, chosen, together, at })
    }
}

/// Returns the groups within reach that are worth it; if none, those out of reach; if none, the one that gains most.
fn choose(all: &[One<'_>]) -> Vec<usize> {
    let worth_it =
        |reachable| (0..all.len()).filter(move |at| all[*at].is_worth_it() && all[*at].group.is_reachable == reachable);
    let best = || (0..all.len()).max_by(|a, b| all[*a].gain.total_cmp(&all[*b].gain));
    let chosen: Vec<usize> = worth_it(true).collect();
    let chosen = if chosen.is_empty() { worth_it(false).collect() } else { chosen };
    if chosen.is_empty() { best().into_iter().collect() } else { chosen }
}

/// A group, rehearsed alone.
struct One<'a> {
    group: &'a Group,
    gain: f64,
    /// Misses saved, by level.
    savings: Vec<i64>,
    against: Vec<Against>,
}

impl One<'_> {
    fn is_worth_it(&self) -> bool {
        self.gain >= LEAST_OWN_GAIN && !self.against.iter().any(Against::forbids)
    }

    /// `savings 8,123 L1 and 7,990 L2 misses`.
    fn savings(&self) -> String {
        let of = |(level, misses): (usize, &i64)| {
            let sign = if *misses < 0 { "−" } else { "" };
            format!("{sign}{} L{}", grouped(misses.unsigned_abs()), level + 1)
        };
        let parts: Vec<String> = self.savings.iter().enumerate().map(of).collect();
        format!("{} misses", listed(&parts, "and"))
    }
}

/// All groups, rehearsed.
struct RehearsedGroups<'a> {
    all: Vec<One<'a>>,
    chosen: Vec<usize>,
    together: CopyCosts,
    /// The policy of the chosen ones in `together`.
    at: usize,
}

impl RehearsedGroups<'_> {
    fn chosen(&self) -> impl Iterator<Item = &One<'_>> {
        self.chosen.iter().map(|at| &self.all[*at])
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.chosen().map(|one| format!("`{}`", one.group.site)).collect();
        listed(&names, "and")
    }

    fn evidence(&self, most_gain: f64) -> Evidence {
        let lines = self.all.iter().flat_map(lines_of).collect();
        let columns =
            ["site", "copies", "bytes", "target lines", "source lines", "read soon", "blamed misses", "gain alone"];
        let rows = self.all.iter().map(|one| {
            let seen = &one.group.seen;
            vec![
                Cell::text(one.group.site.to_string()),
                Cell::Count(seen.copies),
                Cell::Bytes(seen.bytes),
                Cell::Count(seen.target_lines),
                Cell::Count(seen.source_lines),
                Cell::Share(seen.read_soon_share()),
                Cell::Count(one.group.blame.misses()),
                Cell::Share(one.gain),
            ]
        });
        let table =
            Table { title: "copies".to_owned(), columns: columns.map(str::to_owned).to_vec(), rows: rows.collect() };
        Evidence { lines, tables: vec![table], most_gain }
    }

    fn symptom(&self) -> String {
        let blamed: u64 = self.chosen().map(|one| one.group.blame.misses()).sum();
        let bytes_written: u64 = self.chosen().map(|one| one.group.seen.bytes).sum();
        format!(
            "{} that {} writes push out lines which others miss {} times",
            bytes(bytes_written),
            self.names(),
            grouped(blamed)
        )
    }

    fn cause(&self) -> String {
        let mut seen = CopyCounts::default();
        self.chosen().for_each(|one| seen.add(&one.group.seen));
        let soon = seen.read_soon_share();
        let only = if soon < SOON { "only " } else { "" };
        format!(
            "Each line that a copy writes takes a place in the caches, and {only}{} of these lines are read before they leave.",
            percent(soon)
        )
    }

    fn prediction(&self, case: &Traced) -> Prediction {
        let (gain, low, high) = self.together.gain(self.at);
        Prediction {
            gain,
            low,
            high,
            of_whole_run: self.together.of_whole_run(self.at),
            modelled_cycles: self.together.median_cycles(0),
            of: Base::CYCLES,
            placements: self.together.placements.clone(),
            overlap: case.machine().hidden_share(),
            approximate: vec![
                "a store past the caches is taken to wait as long as the ordinary one did; where the last level holds the \
                 target, it waits longer"
                    .to_owned(),
            ],
            ..Prediction::default()
        }
    }

    fn unless(&self) -> Vec<String> {
        let against = self.chosen().flat_map(|one| one.against.iter().map(Against::sentence));
        let usual = "what is copied is read soon in other runs than this one".to_owned();
        against.chain([usual]).collect()
    }

    /// Options of `apply bypass`.
    fn options(&self) -> Vec<String> {
        let sites = self.chosen().take(MOST_SITES).flat_map(|one| ["--site".to_owned(), one.group.site.to_string()]);
        let least = self.chosen().map(|one| one.group.seen.mean_bytes()).min().unwrap_or(0);
        let min = (least < USUAL_LEAST_BYTES).then(|| {
            // Half of the mean: sizes vary.
            let bytes = (least / 2).max(LEAST_COPY_BYTES / 2).next_power_of_two();
            ["--min".to_owned(), bytes.to_string()]
        });
        ["--copies".to_owned()].into_iter().chain(sites).chain(min.into_iter().flatten()).collect()
    }

    fn reach(&self) -> Reach {
        if self.chosen().all(|one| one.group.is_reachable) {
            return Reach::Outside;
        }
        Reach::Inside {
            why: "the copy is built into the program, or is inside the C library or the kernel, where no preloaded library \
                  takes its place"
                .to_owned(),
            change: format!(
                "let {} copy by nearmiss_bypass_copy of nearmiss-bypass.h, or by the crate nearmiss-bypass",
                self.names()
            ),
        }
    }
}

/// Returns the evidence of one group, under its name.
fn lines_of(one: &One<'_>) -> Vec<EvidenceLine> {
    let seen = &one.group.seen;
    let of = if one.group.site.to_string() == one.group.function {
        String::new()
    } else {
        format!(" in `{}`", one.group.function)
    };
    let blamed: Vec<String> =
        one.group.blame.by_cache().map(|(cache, misses)| format!("{} {cache}", grouped(misses))).collect();
    let blamed = if blamed.is_empty() { "no".to_owned() } else { listed(&blamed, "and") };
    let mut lines = vec![EvidenceLine::new(
        if one.group.is_reachable { "Copies" } else { "No reach" },
        format!("`{}`{of}: {} by {}.", one.group.site, bytes(seen.bytes), counted(seen.copies, "call")),
    )];
    lines.push(EvidenceLine::new(
        "",
        format!(
            "Blamed for {blamed} misses of others; past the caches it saves {}, and {} of the cycles.",
            one.savings(),
            percent(one.gain)
        ),
    ));
    lines.extend(one.against.iter().map(|why| EvidenceLine::new("Against", format!("{}.", capital(&why.sentence())))));
    lines
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

impl Suspicion for Copying {
    fn most_gain(&self) -> f64 {
        self.most_gain
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let case = case.traced()?;
        let judged = self.judge(case)?;
        let reach = judged.reach();
        let outside = reach == Reach::Outside;
        let mut evidence = judged.evidence(self.most_gain);
        evidence.lines.extend(self.by_size(&judged));
        let command = |verb| command_line(verb, super::super::NAME, &judged.options(), &case.manifest.command);
        Ok(Finding {
            remedy: super::super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: judged.symptom(),
            cause: judged.cause(),
            evidence,
            treatment: format!("The copies of {} past the CPU's caches", judged.names()),
            prediction: judged.prediction(case),
            unless: judged.unless(),
            apply: outside.then(|| command("apply")),
            verify: outside.then(|| command("verify")),
            reach,
        })
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        if request.values.is_empty() {
            return table(case, "the copies of each site, past the caches".to_owned(), &self.groups);
        }
        let sites = request.values.iter().filter_map(|value| match value {
            Value::Name(name) => name.parse::<Site>().ok(),
            Value::Number(_) => None,
        });
        let named = named(case, &sites.collect::<Vec<_>>())?;
        table(case, "the copies that were named, past the caches".to_owned(), &named)
    }
}

/// The groups that a user named; refuses a name that nothing in the run has.
pub(super) fn named(case: &Traced, sites: &[Site]) -> Result<Vec<Group>, CaseError> {
    groups(case)?.named(sites).map_err(|site| {
        CaseError::Unfit(format!(
            "--sites {site}: nothing in this run copies there; `nearmiss rehearse bypass` without --sites lists what does"
        ))
    })
}

/// Suspects copies in a run that lacks their gain past the caches; `sentence` gives what is known of them.
pub(super) fn unrehearsed(sentence: String, why: &str, known: EvidenceKind, most_gain: f64) -> Unrehearsed {
    Unrehearsed {
        remedy: super::super::NAME,
        symptom: sentence.clone(),
        sentence,
        known,
        cause: "Lines that a copy writes take places in the caches.",
        lacking: "what it would gain",
        why: why.to_owned(),
        carry: "stores",
        most_gain,
    }
}
