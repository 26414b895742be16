//! The paper's figures 4.2-3, 4.2-7 and 4.2-8, drawn from our figures, with its own numbers as diamonds.

use super::figures::{FINAL_PATCH, FIRST_PATCH};
use super::replica::Counts;
use super::scaling::{CPUS, Scaling};
use super::shares::{Patched, Shares};
use crate::record::Picture;
use nearmiss_report::plot::figure::{Marks, Panel, Series, picture};

fn named(number: &str, title: &str, note: &str, panels: &[Panel]) -> Picture {
    let title = format!("Figure {number}: {title}");
    Picture { file: format!("figure-{number}.svg"), svg: picture(&title, note, panels), title }
}

fn bars(title: &str, y_title: &str, series: Vec<Series>) -> Panel {
    let places = ["original", "every copy\nbypasses", "chosen sites\nbypass"];
    Panel {
        title: title.to_owned(),
        x_title: String::new(),
        y_title: y_title.to_owned(),
        places: places.map(str::to_owned).to_vec(),
        marks: Marks::Bars,
        series,
    }
}

fn of_all(patched: &Patched, percent: impl Fn(&Counts) -> f64) -> Vec<f64> {
    [&patched.original, &patched.every, &patched.chosen].map(percent).to_vec()
}

/// CPU time and L3 misses under both patches.
pub fn patches(shares: &Shares) -> Vec<Picture> {
    let Shares { writing, piped } = shares;
    let theirs = |first: f64, last: f64| vec![None, Some(first), Some(last)];
    let note = "Bars: modelled. Diamonds: the paper's, measured.";
    let cpu = |patched: &Patched| of_all(patched, |counts| patched.cycles_percent(counts));
    let measured = theirs(FIRST_PATCH.cpu, FINAL_PATCH.cpu);
    let cpu_panel = bars(
        "CPU time (modelled: cycles)",
        "of the original's (%)",
        vec![
            Series { paper: measured, ..Series::new("4 streams write", cpu(writing)) },
            Series::new("the copy is read at once", cpu(piped)),
        ],
    );
    let all = of_all(writing, |counts| writing.misses_percent(counts));
    let copy = of_all(writing, |counts| writing.copy_misses_percent(counts));
    let miss_panel = bars(
        "L3 misses, 4 streams write",
        "of the original's (%)",
        vec![
            Series { paper: theirs(FIRST_PATCH.misses, FINAL_PATCH.misses), ..Series::new("all", all) },
            Series {
                paper: theirs(FIRST_PATCH.copy_misses, FINAL_PATCH.copy_misses),
                ..Series::new("the copy's", copy)
            },
        ],
    );
    vec![
        named("4.2-7", "CPU time, copies around the caches", note, &[cpu_panel]),
        named("4.2-8", "L3 misses, copies around the caches", note, &[miss_panel]),
    ]
}

/// Throughput and bus over CPUs.
pub fn scaling(scaling: &Scaling) -> Picture {
    let panel = |title: &str, y_title: &str, values: &dyn Fn(&[Counts]) -> Vec<f64>| Panel {
        title: title.to_owned(),
        x_title: "CPUs".to_owned(),
        y_title: y_title.to_owned(),
        places: CPUS.iter().map(usize::to_string).collect(),
        marks: Marks::Lines,
        series: vec![
            Series::new("original", values(&scaling.cached)),
            Series::new("chosen sites bypass", values(&scaling.bypassing)),
        ],
    };
    let panels = [
        panel("throughput", "throughput (1 CPU, original = 1)", &|counts| scaling.throughput(counts)),
        panel("the bus", "time in which it is busy (%)", &|counts| scaling.bus_percent(counts)),
    ];
    let note = "Modelled, without disks. The paper's, measured, waits for disks beyond 4 CPUs.";
    named("4.2-3", "scaling over CPUs, one bus", note, &panels)
}
