//! Bus transactions against the offset within the page: the picture that gave the first paper's culprit away.

use super::Section;
use crate::load::Report;
use crate::number::{grouped, percent_of};
use crate::plot::chart::{Plot, Tick, count_ticks, pct};
use maud::{Markup, html};
use nearmiss_record::model::PageOffsets;

/// More bins than this are drawn together.
const MOST_BARS: usize = 256;

struct Bin {
    from: u64,
    to: u64,
    user: u64,
    kernel: u64,
}

impl Bin {
    fn both(&self) -> u64 {
        self.user.saturating_add(self.kernel)
    }

    fn range(&self) -> String {
        format!("{:#05x}–{:#05x}", self.from, self.to)
    }

    fn label(&self) -> String {
        format!("offset {}: {} by kernel, {} by user", self.range(), grouped(self.kernel), grouped(self.user))
    }
}

/// Bins of the record, so many together that the bars fit, and the bytes of each.
fn bins(offsets: &PageOffsets) -> (Vec<Bin>, u64) {
    let together = offsets.user.len().div_ceil(MOST_BARS).max(1);
    let width = u64::from(offsets.bin_bytes).saturating_mul(together as u64);
    let sum = |values: &[u64]| values.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let bin = |(i, (user, kernel)): (usize, (&[u64], &[u64]))| {
        let from = (i as u64).saturating_mul(width);
        Bin { from, to: from.saturating_add(width).saturating_sub(1), user: sum(user), kernel: sum(kernel) }
    };
    let chunks = offsets.user.chunks(together).zip(offsets.kernel.chunks(together));
    (chunks.enumerate().map(bin).collect(), width)
}

/// A bar a bin, the kernel's part below, against an axis that ends at `end`.
fn bars(bins: &[Bin], end: f64) -> Markup {
    let bar = 100.0 / bins.len() as f64;
    let height = |n: u64| n as f64 * 100.0 / end;
    html! {
        @for (i, b) in bins.iter().enumerate() {
            g data-v=(b.label()) {
                rect.hit x=(pct(i as f64 * bar)) width=(pct(bar)) y="0" height="100%" {}
                @if b.kernel > 0 { rect.kernel x=(pct((i as f64 + 0.08) * bar)) width=(pct(bar * 0.84)) y=(pct(100.0 - height(b.kernel))) height=(pct(height(b.kernel))) {} }
                @if b.user > 0 { rect.user x=(pct((i as f64 + 0.08) * bar)) width=(pct(bar * 0.84)) y=(pct(100.0 - height(b.kernel) - height(b.user))) height=(pct(height(b.user))) {} }
            }
        }
    }
}

/// The bins with any transaction, most first, and the sum of all.
fn table(bins: &[Bin], total: u64) -> Markup {
    let mut ranked: Vec<&Bin> = bins.iter().filter(|b| b.both() > 0).collect();
    ranked.sort_by_key(|b| std::cmp::Reverse(b.both()));
    let sum = |part: fn(&Bin) -> u64| bins.iter().fold(0u64, |a, b| a.saturating_add(part(b)));
    html! {
        div.scroll tabindex="0" role="region" aria-label="Transactions by page offset" {
            table data-sort {
                thead { tr { th scope="col" { "offset" } th.n scope="col" { "kernel" } th.n scope="col" { "user" } th.n scope="col" { "both" } } }
                tbody {
                    @for b in &ranked {
                        tr {
                            td data-v=(b.from) { code { (b.range()) } }
                            td.n data-v=(b.kernel) { (grouped(b.kernel)) }
                            td.n data-v=(b.user) { (grouped(b.user)) }
                            td.n data-v=(b.both()) { (grouped(b.both())) }
                        }
                    }
                }
                tfoot { tr {
                    th scope="row" { "total" }
                    td.n { (grouped(sum(|b| b.kernel))) }
                    td.n { (grouped(sum(|b| b.user))) }
                    td.n { (grouped(total)) }
                } }
            }
        }
    }
}

pub(super) fn section(report: &Report) -> Option<Section> {
    let (bins, width) = bins(&report.model.page_offsets);
    let highest = bins.iter().max_by_key(|b| b.both())?;
    let total = bins.iter().fold(0u64, |a, b| a.saturating_add(b.both()));
    if total == 0 {
        return Section::new(
            "offsets",
            "Bus transactions by page offset",
            html! { p { "There was not one bus transaction." } },
        );
    }
    let (y_ticks, end) = count_ticks(highest.both());
    let marks = bars(&bins, end);
    let page = width.saturating_mul(bins.len() as u64);
    let x_ticks = (0..=4u64).map(|i| Tick { at: i as f64 * 25.0, label: format!("{:#05x}", page / 4 * i) }).collect();
    let share = percent_of(highest.both(), total);
    let hint = format!("Highest: {} ({share} of all transactions).", highest.label());
    let body = html! {
        p { "Modelled transactions that left the outermost cache, by the offset of their address within its page, " (width) " bytes a bar. A spike means that data at one offset of many pages falls on the same few sets." }
        ul.legend { li { span.swatch.kernel {} "caused by the kernel" } li { span.swatch.user {} "caused by user mode" } }
        (Plot { alt: "Bus transactions against offset within the page.", x_title: "offset within the page (bytes, hexadecimal)", y_title: "bus transactions (count)", x_ticks, y_ticks, height: 220, marks, hint: &hint }.draw())
        details {
            summary { "Table: transactions by page offset" }
            (table(&bins, total))
        }
    };
    Section::new("offsets", "Bus transactions by page offset", body)
}
