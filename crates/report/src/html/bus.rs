//! Transactions on the bus by class.

use super::Section;
use crate::load::Report;
use crate::number::{grouped, percentage, shares_tenths, tenths};
use crate::plot::chart::pct;
use maud::html;

pub(super) fn section(report: &Report) -> Option<Section> {
    let bus = &report.model.totals.bus;
    let classes = [
        ("r", "reads of remote memory", bus.read_remote),
        ("l-n", "local reads, no other CPU had the line", bus.read_local_none),
        ("l-s", "local reads, others had it clean", bus.read_local_shared),
        ("l-m", "local reads, modified in another CPU's cache", bus.read_local_modified),
        ("write-back", "modified lines written back", bus.write_backs),
        ("invalidation", "invalidations of others without data", bus.invalidations),
        ("nt full", "non-temporal stores, full lines", bus.nt_full),
        ("nt part", "non-temporal stores, parts of lines", bus.nt_partial),
    ];
    let total = bus.transactions();
    let counts = classes.map(|(.., n)| n);
    let body = html! {
        p { "Modelled transactions beyond the outermost cache. Reads are classed by where the line was: remote, or local and in another CPU's cache not at all, clean, or modified." }
        div.stack aria-hidden="true" {
            @for (i, (name, _, n)) in classes.iter().enumerate().filter(|(_, c)| c.2 > 0) { span class={ "c" (i % 8) } style={ "width:" (pct(percentage(*n, total))) } title=(name) {} }
        }
        div.scroll tabindex="0" role="region" aria-label="Bus transactions by class" {
            table data-sort {
                thead { tr { th scope="col" { "class" } th scope="col" { "what" } th.n scope="col" { "transactions" } th.n scope="col" { "share" } } }
                tbody {
                    @for (i, ((name, what, n), share)) in classes.iter().zip(shares_tenths(&counts)).enumerate() {
                        tr { th scope="row" { span.swatch.{ "c" (i % 8) } {} (name) } td.words { (what) } td.n data-v=(n) { (grouped(*n)) } td.n data-v=(share) { (tenths(*n, share)) } }
                    }
                }
                tfoot { tr { th scope="row" colspan="2" { "total" } td.n { (grouped(total)) } td.n {} } }
            }
        }
    };
    Section::new("bus", "Bus transactions by class", body)
}
