//! A gate as a comment of a pull request: one table, and the causes folded.

use super::words::{beyond, cause, change, headline, is_shown, mean, noise, recorder, ruling, title, whole_title};
use nearmiss_record::gate::{GateRecord, Ruling};

/// The verdict as Markdown that GitHub and GitLab show alike.
pub fn markdown(record: &GateRecord) -> String {
    let mark = if record.passed { "✅" } else { "❌" };
    let mut text = format!("### {mark} nearmiss gate {}\n\n", escaped(&headline(record)));
    text.push_str("| | figure | old | new | change | noise | verdict |\n|---|---|---:|---:|---:|---:|---|\n");
    for figure in record.figures.iter().filter(|figure| is_shown(figure)) {
        let bold = |text: String| if figure.ruling == Ruling::Beyond { format!("**{text}**") } else { text };
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            mode(&figure.name),
            escaped(&title(&figure.name)),
            mean(figure.old),
            mean(figure.new),
            bold(change(figure)),
            noise(figure),
            bold(ruling(figure)),
        ));
    }
    for figure in beyond(record).filter(|figure| !figure.causes.is_empty()) {
        let summary = escaped(&format!("Why {} {}", whole_title(&figure.name), change(figure)));
        text.push_str(&format!("\n<details><summary>{}</summary>\n\n", summary.replace('`', "")));
        figure.causes.iter().for_each(|found| text.push_str(&format!("- {}\n", escaped(&cause(found, figure)))));
        text.push_str("\n</details>\n");
    }
    let side = |side: &nearmiss_record::gate::GatedSide| {
        format!("{} ({})", escaped(&crate::name::plain(&side.command)), side.recordings)
    };
    text.push_str(&format!(
        "\n{}; recordings: old {}, new {}.\n",
        escaped(&recorder(record)),
        side(&record.old),
        side(&record.new)
    ));
    record.notes.iter().for_each(|note| text.push_str(&format!("\n{}\n", escaped(&crate::name::plain(note)))));
    text
}

fn mode(name: &str) -> &'static str {
    match name.split('.').next() {
        Some("user") => "user",
        Some("kernel") => "kernel",
        _ => "",
    }
}

/// Names come from the recorded program: none of them ends a cell, begins a tag or calls a person.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('|', "\\|").replace('@', "@&#8203;")
}
