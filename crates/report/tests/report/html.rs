//! The HTML page: whole, harmless with any names, and without an error in a browser.

#![allow(clippy::unwrap_used)]

use crate::support;
use crate::support::chromium::visit;
use nearmiss_record::machine::Noise;
use nearmiss_report::html::{Options, render};

/// A name that breaks out of every context that forgets to escape.
const HOSTILE: &str =
    "</code></style><script>document.title='owned'</script>\" onmouseover=\"owned()' `${owned}` \u{202e}<!--";

fn hostile() -> support::Builder {
    let mut b = support::run_queue();
    let model = &mut b.model;
    model.functions[0].name = HOSTILE.into();
    model.functions[1].module = HOSTILE.into();
    model.objects[0].name = HOSTILE.into();
    model.objects[1].allocated_at = vec![HOSTILE.into()];
    model.tasks[0].comm = HOSTILE.into();
    model.lines[0].file = HOSTILE.into();
    model.lines[0].function = HOSTILE.into();
    model.sets[0].cache = HOSTILE.into();
    model.blame[0].victim = HOSTILE.into();
    model.shared_lines[0].object = HOSTILE.into();
    model.shared_lines[0].functions = vec![HOSTILE.into()];
    model.machine.name = HOSTILE.into();
    model.machine.noise = Some(Noise { caution: Some(HOSTILE.into()), ..Noise::default() });
    model.notes = vec![HOSTILE.into()];
    for stack in &mut model.stacks {
        stack.frames.push(HOSTILE.into());
    }
    b.manifest.command = vec![HOSTILE.into()];
    b.manifest.cut = Some(HOSTILE.into());
    b.manifest.notes = vec![HOSTILE.into()];
    b.manifest.nearmiss = HOSTILE.into();
    b
}

#[test]
fn a_noisy_calibration_is_named_in_the_head() {
    let page = |builder: support::Builder| render(&builder.report(), Options::default());
    assert!(!page(support::healthy()).contains("calibrated beside"));
    let mut builder = support::healthy();
    let caution = Some("host was calibrated beside other work".to_owned());
    builder.model.machine.noise = Some(Noise { caution, ..Noise::default() });
    let page = page(builder);
    let (head, _) = page.split_once("</header>").unwrap();
    assert!(head.contains("<p class=\"warning\">host was calibrated beside other work.</p>"), "{head}");
}

#[test]
fn no_name_becomes_markup() {
    let page = render(&hostile().report(), Options::default());
    assert_eq!(page.matches("<script>").count(), 1, "the page's own script only");
    assert_eq!(page.matches("</style>").count(), 1);
    assert_eq!(page.matches("<!--").count(), 0);
    assert!(!page.contains("\" onmouseover=\"owned()"));
    assert!(!page.contains('\u{202e}'));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let page = render(&support::run_queue().report(), Options::default());
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains(" src="));
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn columns_with_few_rows_still_add_up() {
    let report = support::run_queue().report();
    let page = render(&report, Options { top: 2 });
    assert!(page.contains("others (7 functions)"), "nine functions, two shown");
    let total = nearmiss_report::number::grouped(report.model.totals.stall_cycles);
    assert!(page.contains(&format!("<td class=\"n\">{total}</td>")));
}

/// Does what a reader with a keyboard does, and leaves what became of it in the title.
const READER: &str = r##"<script>
const seen = [];
const key = (element, key) => element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
for (const chart of document.querySelectorAll("[data-chart]")) {
  chart.focus(); key(chart, "ArrowRight"); key(chart, "End"); key(chart, "Home");
}
seen.push(document.querySelector("#offsets output.readout").textContent);
for (const button of document.querySelectorAll("thead button")) { button.click(); button.click(); }
const rows = [...document.querySelector("#functions tbody").rows];
const head = document.querySelector("#functions thead").rows[0].cells[3];
head.firstElementChild.click();
seen.push(head.getAttribute("aria-sort"), document.querySelector("#functions tbody").rows[0].cells[0].textContent);
const icicle = document.querySelector("[data-icicle]");
icicle.querySelector("button").focus();
for (const k of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"]) key(document.activeElement, k);
seen.push(document.activeElement.textContent);
document.activeElement.click(); key(document.activeElement, "Escape");
for (const d of document.querySelectorAll("details")) d.open = true;
if (document.documentElement.scrollWidth > innerWidth) seen.push("the page is wider than the window");
document.title = seen.join("|");
</script>"##;

#[test]
fn a_browser_has_nothing_to_complain_about() {
    for builder in [support::run_queue(), hostile(), support::healthy()] {
        let is_plain = builder.manifest.command[0] == "aligned-tasks";
        let page = render(&builder.report(), Options::default());
        let reader = if is_plain { READER } else { "" };
        let Some(visit) = visit(&page.replace("</body>", &format!("{reader}</body>")), 800) else { return };
        assert!(visit.console.is_empty(), "{:#?}", visit.console);
        assert!(visit.dom.contains("<main id=\"main\"") && !visit.dom.contains("<title>owned"));
        if is_plain {
            let title = "<title>offset 0x000–0x01f: 0 by kernel, 1,800 by user|descending|schedule|serve</title>";
            let found = visit.dom.split("<title>").nth(1).unwrap_or_default();
            assert!(visit.dom.contains(title), "{}", &found[..found.len().min(300)]);
        }
    }
}

#[test]
fn a_console_error_is_seen() {
    let Some(visit) = visit("<!DOCTYPE html><script>nothing_of_this_name()</script>", 800) else { return };
    assert_eq!(visit.console.len(), 1, "{:?}", visit.console);
}
