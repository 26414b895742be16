//! Effect of tasks on each other, in words.

use super::judged::JudgedPairs;
use super::tables;
use nearmiss_record::finding::{Evidence, EvidenceLine};
use nearmiss_record::words::{counted, fixed_percent, listed, percent};

/// Tasks for whom best and worst neighbours are named.
const MOST_NAMED: usize = 4;

/// Returns the evidence of the tasks' effect on each other; `most_gain` is the share of the command's cycles in which
/// the tasks wait.
pub fn evidence(judged: &JudgedPairs, most_gain: f64) -> Evidence {
    let mut lines: Vec<EvidenceLine> = Vec::new();
    for task in 0..judged.tasks.len().min(MOST_NAMED) {
        lines
            .extend(neighbours(judged, task).map(|text| EvidenceLine::new(if task == 0 { "Tasks" } else { "" }, text)));
    }
    if judged.tasks.len() > MOST_NAMED {
        let rest = (judged.tasks.len() - MOST_NAMED) as u64;
        lines.push(EvidenceLine::new("", format!("And {} more.", counted(rest, "task"))));
    }
    let [high, low, unknown] = judged.schedules.judged;
    let pairs =
        format!("{} share well, {low} badly, and of {unknown} nothing is certain.", counted(high as u64, "pair"));
    lines.push(EvidenceLine::new("Pairs", pairs));
    lines.push(EvidenceLine::new("Places", places(judged)));
    Evidence { lines, tables: tables::evidence(judged), most_gain: most_gain.max(judged.gain().2) }
}

/// The neighbours with which a task does best and worst, with its cycles of alone.
fn extremes(judged: &JudgedPairs, task: usize) -> Option<[(usize, f64); 2]> {
    let others = (0..judged.tasks.len()).filter(|other| *other != task);
    let beside = others.filter_map(|other| Some((other, judged.seen.table.beside(task, other).mean()?)));
    let mut beside: Vec<(usize, f64)> = beside.collect();
    beside.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    Some([*beside.first()?, *beside.last()?])
}

fn neighbours(judged: &JudgedPairs, task: usize) -> Option<String> {
    let [(best, least), (worst, most)] = extremes(judged, task)?;
    Some(format!(
        "`{}` takes {} of its cycles alone beside `{}`, and {} beside `{}`.",
        judged.name(task),
        percent(least),
        judged.name(best),
        percent(most),
        judged.name(worst)
    ))
}

fn places(judged: &JudgedPairs) -> String {
    let schedules = &judged.schedules;
    let loses = |cycles: f64| percent((cycles / schedules.optimum.max(1.0) - 1.0).max(0.0));
    format!(
        "As recorded the tasks take {} more cycles than placed best; placed by chance {}, and {} at worst.",
        loses(schedules.present),
        loses(schedules.standard),
        loses(schedules.worst)
    )
}

/// Names the shared caches: `the caches from L2 on`.
fn caches(judged: &JudgedPairs) -> String {
    format!("the caches from L{} on", judged.domains.level)
}

/// Describes the symptom, in one sentence with its numbers.
pub fn symptom(judged: &JudgedPairs) -> String {
    let schedules = &judged.schedules;
    format!(
        "{} that share {} take {} of their cycles alone where they are placed by chance",
        counted(judged.tasks.len() as u64, "task"),
        caches(judged),
        fixed_percent(schedules.standard / schedules.alone.max(1.0), 0)
    )
}

/// Describes the cause.
pub fn cause(judged: &JudgedPairs) -> String {
    let [high, ..] = judged.schedules.judged;
    let others = if high > 0 { "; others bring in what both need, or need little" } else { "" };
    format!("Tasks that share a cache push out each other's lines{others}.")
}

/// Describes which tasks belong together.
pub fn treatment(judged: &JudgedPairs) -> String {
    let Some(groups) = judged.proposed() else {
        return "None: no grouping of the tasks is certain to save anything".to_owned();
    };
    let name = |task: &usize| format!("`{}`", judged.name(*task));
    let of_group = |group: &Vec<usize>| listed(&group.iter().map(name).collect::<Vec<_>>(), "and");
    let groups: Vec<String> = groups.iter().filter(|group| !group.is_empty()).map(of_group).collect();
    format!("On CPUs that share {}: {}", caches(judged), groups.join("; and "))
}
