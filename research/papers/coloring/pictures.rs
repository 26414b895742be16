//! The paper's figures 6 to 10, drawn from our figures, with its own numbers as diamonds where its text gives some.

use super::clock::Counts;
use super::colors::{self, Series as Processes};
use super::scaling::{CPUS, KERNELS, Scaling, name};
use super::walk::{Pair, per_slice, rate};
use super::{figures, grouped};
use crate::record::Picture;
use nearmiss_report::plot::figure::{Marks, Panel, Series, picture};

fn named(number: u32, title: &str, note: &str, panels: &[Panel]) -> Picture {
    let title = format!("Figure {number}: {title}");
    Picture { file: format!("figure-{number}.svg"), svg: picture(&title, note, panels), title }
}

fn sizes(pairs: &[Pair]) -> Vec<String> {
    pairs.iter().map(|p| format!("{} KB", grouped(p.kilobytes))).collect()
}

/// Requests and miss ratios over cache sizes.
pub fn figure_6(pairs: &[Pair]) -> Picture {
    let one = pairs.first().map_or(1.0, |p| rate(&p.standard));
    let standard: Vec<f64> = pairs.iter().map(|p| rate(&p.standard) / one).collect();
    let colored = pairs.iter().map(|p| rate(&p.colored) / one).collect();
    let gains = figures::REQUESTS_CHANGE_PERCENT.iter().zip(&standard);
    let paper = gains.map(|(gain, base)| gain.map(|g| base * (1.0 + g / 100.0))).collect();
    let (walk_standard, walk_colored) = pairs.iter().map(Pair::miss_percent).unzip();
    let almost_all = pairs.iter().map(|_| Some(figures::STANDARD_MISS_PERCENT)).collect();
    let panels = [
        Panel {
            title: "web requests/s".to_owned(),
            x_title: "L2 size".to_owned(),
            y_title: "requests/s (256 KB, standard = 1)".to_owned(),
            places: sizes(pairs),
            marks: Marks::Bars,
            series: vec![Series::new("standard", standard), Series { paper, ..Series::new("32 colors", colored) }],
        },
        Panel {
            title: "L2 miss ratio inside the walk".to_owned(),
            x_title: "L2 size".to_owned(),
            y_title: "misses (% of L2 reads)".to_owned(),
            places: sizes(pairs),
            marks: Marks::Bars,
            series: vec![
                Series { paper: almost_all, ..Series::new("standard", walk_standard) },
                Series {
                    paper: figures::COLORED_MISS_PERCENT.map(Some).to_vec(),
                    ..Series::new("32 colors", walk_colored)
                },
            ],
        },
    ];
    let note =
        "Bars: modelled. Diamonds: the paper's, measured; on the left its gain over standard, put on our standard.";
    named(6, "effect of coloring, 1,024 httpd, 4 Pentium Pro", note, &panels)
}

/// Bus transactions.
pub fn figure_7(pairs: &[Pair]) -> Picture {
    let both: Vec<(String, &Counts)> = pairs
        .iter()
        .flat_map(|p| {
            let size = grouped(p.kilobytes);
            [(format!("{size} KB\nstandard"), &p.standard), (format!("{size} KB\n32 colors"), &p.colored)]
        })
        .collect();
    let values = |count: &dyn Fn(&Counts) -> u64| both.iter().map(|(_, c)| per_slice(c, &count)).collect();
    let panel = Panel {
        title: "bus transactions".to_owned(),
        x_title: String::new(),
        y_title: "transactions a slice of a request".to_owned(),
        places: both.iter().map(|(name, _)| name.clone()).collect(),
        marks: Marks::Stack,
        series: vec![
            Series::new("colored lines", values(&|c| c.all.colored)),
            Series::new("other lines", values(&|c| c.all.other)),
        ],
    };
    named(7, "bus transactions, 1,024 httpd", "Modelled.", &[panel])
}

/// Colors against processes.
pub fn figure_8(series: &[Processes]) -> Picture {
    let mut panels = Vec::new();
    for kilobytes in [512, 1024] {
        let of_size: Vec<&Processes> = series.iter().filter(|s| s.kilobytes == kilobytes).collect();
        let panel = |what: &str, values: &dyn Fn(&Processes) -> Vec<f64>| {
            let lines = of_size.iter().map(|s| Series {
                from: colors::COLORS.iter().position(|c| u64::from(*c) >= s.least()),
                ..Series::new(format!("{} httpd", grouped(s.processes as u64)), values(s))
            });
            Panel {
                title: format!("{} KB L2: {what}", grouped(kilobytes)),
                x_title: "colors".to_owned(),
                y_title: "change against standard (%)".to_owned(),
                places: colors::COLORS.iter().map(u32::to_string).collect(),
                marks: Marks::Lines,
                series: lines.collect(),
            }
        };
        panels.push(panel("web requests/s", &Processes::requests_percent));
        panels.push(panel("bus transactions", &Processes::transactions_percent));
    }
    let note = "Modelled. Rings: the least number of colors tried that equation 2 calls enough.";
    named(8, "colors and processes", note, &panels)
}

/// Figures 9 and 10: throughput over CPUs, with table 3.
pub fn scaling(number: u32, scaling: &Scaling) -> Picture {
    let lines = KERNELS.iter().enumerate().map(|(i, kernel)| {
        let values = scaling.throughput(i);
        let paper = scaling.papers_gain(i);
        Series { paper, ..Series::new(name(*kernel), values) }
    });
    let panel = Panel {
        title: "throughput".to_owned(),
        x_title: "CPUs".to_owned(),
        y_title: "throughput (1 CPU, standard = 1)".to_owned(),
        places: CPUS.iter().map(usize::to_string).collect(),
        marks: Marks::Lines,
        series: lines.collect(),
    };
    let contended = scaling.contention_panel();
    let title = format!("{}, 8 Pentium III Xeon, with table 3", scaling.name());
    let note = "Modelled. Diamonds: the paper's, measured; on the left its gain over standard, put on our standard.";
    named(number, &title, note, &[panel, contended])
}
