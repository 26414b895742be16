//! Bus transactions against the offset within the page: the picture that gave the first paper's culprit away.

use super::Section;
use crate::load::Report;
use crate::number::{grouped, percent_of};
use crate::plot::chart::{Plot, Tick, count_ticks, pct};
use maud::html;

/// More bins than this are drawn together.
const MOST_BARS: usize = 256;

struct Bin {
    from: u64,
    to: u64,
    user: u64,
    kernel: u64,
}

pub(super) fn section(report: &Report) -> Option<Section> {
    let offsets = &report.model.page_offsets;
    let together = offsets.user.len().div_ceil(MOST_BARS).max(1);
    let width = u64::from(offsets.bin_bytes).saturating_mul(together as u64);
    let bins: Vec<Bin> = offsets
        .user
        .chunks(together)
        .zip(offsets.kernel.chunks(together))
        .enumerate()
        .map(|(i, (user, kernel))| {
            let from = (i as u64).saturating_mul(width);
            let sum = |values: &[u64]| values.iter().fold(0u64, |a, b| a.saturating_add(*b));
            Bin { from, to: from.saturating_add(width).saturating_sub(1), user: sum(user), kernel: sum(kernel) }
        })
        .collect();
    let most = bins.iter().map(|b| b.user.saturating_add(b.kernel)).max()?;
    let total = bins.iter().fold(0u64, |a, b| a.saturating_add(b.user).saturating_add(b.kernel));
    if total == 0 {
        return Section::new(
            "offsets",
            "Bus transactions by page offset",
            html! { p { "There was not one bus transaction." } },
        );
    }
    let (y_ticks, end) = count_ticks(most);
    let bar = 100.0 / bins.len() as f64;
    let height = |n: u64| n as f64 * 100.0 / end;
    let label = |b: &Bin| {
        format!("offset {:#05x}–{:#05x}: {} by kernel, {} by user", b.from, b.to, grouped(b.kernel), grouped(b.user))
    };
    let marks = html! {
        @for (i, b) in bins.iter().enumerate() {
            g data-v=(label(b)) {
                rect.hit x=(pct(i as f64 * bar)) width=(pct(bar)) y="0" height="100%" {}
                @if b.kernel > 0 { rect.kernel x=(pct((i as f64 + 0.08) * bar)) width=(pct(bar * 0.84)) y=(pct(100.0 - height(b.kernel))) height=(pct(height(b.kernel))) {} }
                @if b.user > 0 { rect.user x=(pct((i as f64 + 0.08) * bar)) width=(pct(bar * 0.84)) y=(pct(100.0 - height(b.kernel) - height(b.user))) height=(pct(height(b.user))) {} }
            }
        }
    };
    let page = width.saturating_mul(bins.len() as u64);
    let x_ticks = (0..=4u64).map(|i| Tick { at: i as f64 * 25.0, label: format!("{:#05x}", page / 4 * i) }).collect();
    let hint = match bins.iter().max_by_key(|b| b.user.saturating_add(b.kernel)) {
        Some(b) => {
            format!(
                "Highest: {} ({} of all transactions).",
                label(b),
                percent_of(b.user.saturating_add(b.kernel), total)
            )
        }
        None => String::new(),
    };
    let mut ranked: Vec<&Bin> = bins.iter().filter(|b| b.user.saturating_add(b.kernel) > 0).collect();
    ranked.sort_by_key(|b| std::cmp::Reverse(b.user.saturating_add(b.kernel)));
    let body = html! {
        p { "Modelled transactions that left the outermost cache, by the offset of their address within its page, " (width) " bytes a bar. A spike means that data at one offset of many pages falls on the same few sets." }
        ul.legend { li { span.swatch.kernel {} "caused by the kernel" } li { span.swatch.user {} "caused by user mode" } }
        (Plot { alt: "Bus transactions against offset within the page.", x_title: "offset within the page (bytes, hexadecimal)", y_title: "bus transactions (count)", x_ticks, y_ticks, height: 220, marks, hint: &hint }.draw())
        details {
            summary { "Table: transactions by page offset" }
            div.scroll tabindex="0" role="region" aria-label="Transactions by page offset" {
                table data-sort {
                    thead { tr { th scope="col" { "offset" } th.n scope="col" { "kernel" } th.n scope="col" { "user" } th.n scope="col" { "both" } } }
                    tbody {
                        @for b in &ranked {
                            tr {
                                td data-v=(b.from) { code { (format!("{:#05x}–{:#05x}", b.from, b.to)) } }
                                td.n data-v=(b.kernel) { (grouped(b.kernel)) }
                                td.n data-v=(b.user) { (grouped(b.user)) }
                                td.n data-v=(b.kernel.saturating_add(b.user)) { (grouped(b.kernel.saturating_add(b.user))) }
                            }
                        }
                    }
                    tfoot { tr {
                        th scope="row" { "total" }
                        td.n { (grouped(bins.iter().fold(0, |a: u64, b| a.saturating_add(b.kernel)))) }
                        td.n { (grouped(bins.iter().fold(0, |a: u64, b| a.saturating_add(b.user)))) }
                        td.n { (grouped(total)) }
                    } }
                }
            }
        }
    };
    Section::new("offsets", "Bus transactions by page offset", body)
}
