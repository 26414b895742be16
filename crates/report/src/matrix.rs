//! A page of an experiment: tables by condition, each with its picture.

use crate::html::page_head;
use maud::{DOCTYPE, Markup, html};
use std::fmt::Write;

const MORE_STYLE: &str = "
table.matrix td, table.matrix th { text-align: right; padding: 0.15rem 0.6rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
table.matrix .name { text-align: left; } table.matrix { border-collapse: collapse; } .scroll { overflow-x: auto; }
";

/// One table, and how it looks.
pub struct Section {
    /// Subject, with unit and origin.
    pub title: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// Number of the columns that are names of rows.
    pub names: usize,
    /// Rows with as many cells as the header has.
    pub rows: Vec<Vec<String>>,
    /// An SVG document that stands alone.
    pub picture: Option<String>,
}

/// The page. `about` has a paragraph a line, and `notes` explain marks.
pub fn page(name: &str, about: &str, sections: &[Section], notes: &[String]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (page_head(name, &html! {}, MORE_STYLE))
            body {
                a.skip href="#main" { "Skip to the figures" }
                header {
                    p.kicker { "nearmiss lab · every figure on this page was measured" }
                    h1 { (name) }
                    @for line in about.lines() { p { (line) } }
                    @for note in notes { p.quiet { (note) } }
                }
                main #main tabindex="-1" { @for one in sections { (section(one)) } }
            }
        }
    };
    page.into_string()
}

fn section(section: &Section) -> Markup {
    html! {
        section {
            h2 { (section.title) }
            @if let Some(picture) = &section.picture {
                // A document of its own: its style stays its own.
                img src=(data_address(picture)) alt=(section.title);
            }
            div.scroll {
                table.matrix {
                    thead { tr {
                        @for name in section.header.iter().take(section.names) { th.name { (name) } }
                        @for name in section.header.iter().skip(section.names) { th { (name) } }
                    } }
                    tbody {
                        @for row in &section.rows {
                            tr {
                                @for cell in row.iter().take(section.names) { td.name { (cell) } }
                                @for cell in row.iter().skip(section.names) { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The document as an address, every byte escaped that is not a letter or a digit.
fn data_address(svg: &str) -> String {
    let mut address = "data:image/svg+xml,".to_owned();
    for byte in svg.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => address.push(byte.into()),
            _ => drop(write!(address, "%{byte:02X}")),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_experiment_is_escaped() {
        let section = Section {
            title: "wall_s <b>".to_owned(),
            header: vec!["workload".to_owned(), "1".to_owned()],
            names: 1,
            rows: vec![vec!["<script>".to_owned(), "0.5".to_owned()]],
            picture: Some("<svg>é</svg>".to_owned()),
        };
        let page = page("a&b", "seed 1", &[section], &["~: wide".to_owned()]);
        assert!(page.contains("&lt;script&gt;") && page.contains("wall_s &lt;b&gt;") && page.contains("a&amp;b"));
        assert!(page.contains("data:image/svg+xml,%3Csvg%3E%C3%A9%3C%2Fsvg%3E"));
        assert!(!page.contains("<script>") && page.contains("<th class=\"name\">workload</th><th>1</th>"));
    }
}
