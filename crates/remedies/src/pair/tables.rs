//! A run's pairs and schedules as tables.

use super::judged::JudgedPairs;
use super::{NAME, PARAMETER};
use nearmiss_analysis::{CaseError, Traced, spread, waits};
use nearmiss_pairing::Affinity;
use nearmiss_pairing::table::USUAL_CONFIDENCE;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{counted, grouped, percent};

/// The rehearsal of a run with one or several windows; the tables behind it are of the first.
pub fn rehearsal(case: &Traced, judged: &[JudgedPairs]) -> Result<Rehearsal, CaseError> {
    let first = judged.first().ok_or_else(|| CaseError::Unfit("no window to rehearse with".to_owned()))?;
    let columns = [PARAMETER, "tasks are placed", "cycles", "of alone", "saved", "moves"];
    Ok(Rehearsal {
        remedy: NAME.to_owned(),
        subject: subject(first),
        basis: basis(case, first),
        placements: first.placements.clone(),
        table: table("rehearsal", &columns, judged.iter().flat_map(schedules).collect()),
        more: vec![tasks(first), pairs(first)],
    })
}

/// The figures behind a finding.
pub fn evidence(judged: &JudgedPairs) -> Vec<Table> {
    let columns = [PARAMETER, "tasks are placed", "cycles", "of alone", "saved", "moves"];
    vec![tasks(judged), pairs(judged), table("schedules", &columns, schedules(judged))]
}

/// Names the proposal, in short.
fn subject(judged: &JudgedPairs) -> String {
    let Some(groups) = judged.proposed() else {
        return format!("{}, and no grouping is proposed", counted(judged.tasks.len() as u64, "task"));
    };
    let tid = |task: &usize| judged.tasks[*task].tid.to_string();
    let groups: Vec<String> = groups.iter().map(|group| group.iter().map(tid).collect::<Vec<_>>().join(" ")).collect();
    format!("tasks {}", groups.join(" | "))
}

fn basis(case: &Traced, judged: &JudgedPairs) -> String {
    let (gain, low, high) = judged.gain();
    let whole = if judged.proposed().is_some() { "the groups save" } else { "the best groups would save" };
    let [gain, low, high] = [gain, low, high].map(percent);
    let left_out = match judged.left_out {
        0 => String::new(),
        some => format!("; left out: {}, as little was executed there", counted(some as u64, "task")),
    };
    format!(
        "means over {} page placements, {}; replayed as a whole {whole} {gain} [{low}, {high}] of a typical placement by \
         chance; {} references of user mode, of each task {} late windows of {} instructions{left_out}; {}waiting is not \
         replayed",
        judged.placements.len(),
        waits(case),
        grouped(judged.records),
        judged.windows,
        grouped(judged.window),
        if judged.is_exact(case) { "" } else { "first-level figures are approximate, and " },
    )
}

fn schedules(judged: &JudgedPairs) -> Vec<Vec<Cell>> {
    let schedules = &judged.schedules;
    let row = |name: &str, cycles: f64, moves: Option<f64>| {
        vec![
            Cell::Count(judged.window),
            Cell::text(name),
            Cell::Cycles(cycles as u64),
            Cell::Share(cycles / schedules.alone.max(1.0)),
            Cell::Share(schedules.saved(cycles)),
            moves.map_or(Cell::Unknown, Cell::Number),
        ]
    };
    let whole = |cycles: &[f64]| spread(cycles.iter().copied()).0;
    let replayed = |name: &str, cycles: &[f64]| {
        let mut row = row(name, whole(cycles), None);
        row[4] = Cell::Share(1.0 - whole(cycles) / whole(&judged.whole[0]).max(1.0));
        row
    };
    vec![
        row("as recorded", schedules.present, None),
        row("by chance, on average", schedules.standard, Some(0.0)),
        row("by chance, at worst", schedules.worst, Some(0.0)),
        row("by the paper's swaps", schedules.paper.cycles, Some(schedules.paper.moves)),
        row("by the groups", schedules.ours.cycles, Some(schedules.ours.moves)),
        row("best at all times", schedules.optimum, None),
        replayed("by chance, replayed whole", &judged.whole[0]),
        replayed("by the groups, replayed whole", &judged.whole[1]),
    ]
}

fn tasks(judged: &JudgedPairs) -> Table {
    let group = |task| judged.schedules.groups.iter().position(|group| group.contains(&task));
    let group = |task| group(task).filter(|_| judged.proposed().is_some());
    let row = |task: usize| {
        vec![
            Cell::text(judged.name(task)),
            Cell::Cycles(judged.seen.alone[task] as u64),
            group(task).map_or(Cell::Unknown, |group| Cell::Count(group as u64)),
        ]
    };
    table("tasks", &["task", "cycles alone", "group"], (0..judged.tasks.len()).map(row).collect())
}

fn pairs(judged: &JudgedPairs) -> Table {
    let seen = &judged.seen.table;
    let mean = seen.mean().unwrap_or(1.0);
    let mut pairs: Vec<(usize, usize)> = seen.pairs().collect();
    let together = |(a, b): (usize, usize)| seen.together(a, b).unwrap_or(f64::INFINITY);
    pairs.sort_by(|one, other| together(*one).total_cmp(&together(*other)).then(one.cmp(other)));
    let of_alone = |task, other| seen.beside(task, other).mean().map_or(Cell::Unknown, Cell::Share);
    let error = |task, other| {
        seen.beside(task, other).variance_of_mean().map_or(Cell::Unknown, |variance| Cell::Share(variance.sqrt()))
    };
    let row = |&(a, b): &(usize, usize)| {
        let verdict = seen.judge(a, b, mean, USUAL_CONFIDENCE);
        let word = match verdict.affinity {
            Affinity::High => "high",
            Affinity::Low => "low",
            Affinity::Unknown => "unknown",
        };
        vec![
            Cell::text(judged.name(a)),
            Cell::text(judged.name(b)),
            of_alone(a, b),
            error(a, b),
            of_alone(b, a),
            error(b, a),
            Cell::text(word),
            Cell::Share(verdict.confidence),
        ]
    };
    let columns = ["task", "beside", "of alone", "±", "the other", "±", "judged", "confidence"];
    table("pairs, best first: cycles beside each other, of alone", &columns, pairs.iter().map(row).collect())
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    Table { title: title.to_owned(), columns: columns.iter().map(|column| (*column).to_owned()).collect(), rows }
}
