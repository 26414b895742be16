//! The paper's figures, drawn from our figures, with its own numbers as diamonds where its text gives some.

use super::figures;
use super::run::Counts;
use super::study::{SCHEDULERS, Study};
use super::summary::{mean, misses, most_of_ten, percent, seconds, sum};
use crate::record::Picture;
use nearmiss_report::plot::figure::{Marks, Panel, Series, picture};

/// Bins of the share of time in pairs that share.
const BINS: usize = 10;

fn named(number: &str, title: &str, note: &str, panels: &[Panel]) -> Picture {
    let title = format!("Figure {number}: {title}");
    Picture { file: format!("figure-{number}.svg"), svg: picture(&title, note, panels), title }
}

fn panel(title: &str, y_title: &str, marks: Marks, series: Vec<Series>) -> Panel {
    let places = SCHEDULERS.iter().map(|scheduler| scheduler.name().replace(' ', "\n")).collect();
    Panel { title: title.to_owned(), x_title: String::new(), y_title: y_title.to_owned(), places, marks, series }
}

/// Figures 5 and 7, and 10.
pub fn times(study: &Study) -> Vec<Picture> {
    let of = |value: &dyn Fn(&[Counts]) -> f64| study.runs.iter().map(|runs| value(runs)).collect::<Vec<f64>>();
    let bars = |title: &str, unit: &str, value: fn(&Counts) -> f64, changes: [f64; 2]| {
        let (means, mosts) = (of(&|runs| mean(runs, &value)), of(&|runs| most_of_ten(runs, &value)));
        let paper = |values: &[f64], change: f64| vec![None, Some(values[0] * (1.0 + change / 100.0)), None, None];
        let series = vec![
            Series { paper: paper(&means, changes[0]), ..Series::new("mean", means) },
            Series { paper: paper(&mosts, changes[1]), ..Series::new("most of 10 runs", mosts) },
        ];
        panel(title, unit, Marks::Bars, series)
    };
    let time = [figures::MEAN_TIME_CHANGE_PERCENT, figures::LONGEST_TIME_CHANGE_PERCENT];
    let missed = [figures::MEAN_MISSES_CHANGE_PERCENT, figures::MOST_MISSES_CHANGE_PERCENT];
    let panels = [bars("run time", "s", seconds, time), bars("L2 misses", "1,000 millions", misses, missed)];
    let note = "Bars: modelled. Diamonds: the paper's change, measured, put on our standard.";
    vec![named("5", "run time and misses of the product (with 6 and 7)", note, &panels), relation(study)]
}

fn relation(study: &Study) -> Picture {
    let mut bins = vec![Vec::new(); BINS];
    for counts in study.runs.iter().flatten() {
        bins[((counts.sharing() * BINS as f64) as usize).min(BINS - 1)].push(counts.clone());
    }
    let filled: Vec<(usize, Vec<Counts>)> = bins.into_iter().enumerate().filter(|(_, bin)| !bin.is_empty()).collect();
    let width = 100 / BINS;
    let panel = Panel {
        title: "run time".to_owned(),
        x_title: "time in pairs that share (%)".to_owned(),
        y_title: "s".to_owned(),
        places: filled.iter().map(|(at, _)| format!("{}–{}", at * width, (at + 1) * width)).collect(),
        marks: Marks::Lines,
        series: vec![Series::new("all schedulers", filled.iter().map(|(_, bin)| mean(bin, &seconds)).collect())],
    };
    named(
        "10",
        "run time by the share of time in pairs that share",
        "Modelled; means of the runs in each tenth.",
        &[panel],
    )
}

/// Figures 14 and 16.
pub fn placements(study: &Study) -> Vec<Picture> {
    let share = |part: &dyn Fn(&Counts) -> u64, of: &dyn Fn(&Counts) -> u64| -> Vec<f64> {
        study.runs.iter().map(|runs| percent(sum(runs, part), sum(runs, of))).collect()
    };
    let classes = ["(1)", "(2)", "(3)"].iter().enumerate();
    let classes = classes.map(|(at, name)| Series::new(*name, share(&|c| c.classes[at], &|c| c.classes.iter().sum())));
    let pairs = [("share", 1), ("do not", 0)];
    let pairs = pairs.map(|(name, at)| Series::new(name, share(&|c| c.pairs[at], &|c| c.pairs.iter().sum())));
    let panels = [
        panel("placements of figure 11", "time (%)", Marks::Stack, classes.collect()),
        panel("pairs side by side", "time (%)", Marks::Stack, pairs.into()),
    ];
    vec![named("14", "placements and pairs (with 16)", "Modelled.", &panels)]
}
