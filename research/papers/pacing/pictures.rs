//! The paper's figures 5 to 8 as curves over the rate.

use super::plan::{Group, Plan};
use super::{Cell, Curve};
use crate::record::Picture;
use nearmiss_report::plot::figure::{Marks, Panel, Series, picture};

/// A panel holds three curves.
const MOST_CURVES: usize = 3;

/// The pictures of one group.
pub fn of(group: Group, plan: Plan, curves: &[Curve]) -> Vec<Picture> {
    let (times, cpu, sockets) = match group {
        Group::Closing => ("figure-5", "figure-7", "a connection a request"),
        Group::Keeping => ("figure-6", "figure-8", "7,000 kept connections"),
        Group::Today => ("epoll-times", "epoll-cpu", "epoll, 7,000 kept connections"),
    };
    let response: [Quantity; 3] = [
        ("all", "ms", |cell| cell.mean_ms[0]),
        ("hits", "ms", |cell| cell.mean_ms[1]),
        ("misses", "ms", |cell| cell.mean_ms[2]),
    ];
    let shares: [Quantity; 3] = [
        ("CPU, total", "% of a CPU", |cell| cell.cpu_percent[0]),
        ("CPU, kernel", "% of a CPU", |cell| cell.cpu_percent[1]),
        ("waits", "% of the kernel's part", |cell| cell.waits_percent.unwrap_or(0.0)),
    ];
    vec![
        drawn(times, &format!("response time, {sockets}"), plan, curves, &response),
        drawn(cpu, &format!("CPU of the accelerator, {sockets}"), plan, curves, &shares),
    ]
}

/// Title, unit, value.
type Quantity = (&'static str, &'static str, fn(&Cell) -> f64);

fn drawn(file: &str, title: &str, plan: Plan, curves: &[Curve], quantities: &[Quantity]) -> Picture {
    let panels: Vec<Panel> = quantities
        .iter()
        .flat_map(|quantity| curves.chunks(MOST_CURVES).map(|curves| panel(quantity, plan, curves)))
        .collect();
    Picture {
        file: format!("{file}.svg"),
        svg: picture(title, "Measured on this machine.", &panels),
        title: title.to_owned(),
    }
}

fn panel((title, unit, value): &Quantity, plan: Plan, curves: &[Curve]) -> Panel {
    // A rate without a figure is drawn at zero, as the tables state.
    let known = |value: f64| if value.is_finite() { value } else { 0.0 };
    let series =
        |curve: &Curve| Series::new(curve.subject.pace.name(), curve.cells.iter().map(|c| known(value(c))).collect());
    Panel {
        title: (*title).to_owned(),
        x_title: "requests/s".to_owned(),
        y_title: (*unit).to_owned(),
        places: plan.rates.iter().map(u32::to_string).collect(),
        marks: Marks::Lines,
        series: curves.iter().map(series).collect(),
    }
}
