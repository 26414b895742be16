//! The page of text, whole.

#![allow(clippy::unwrap_used)]

use crate::support;
use nearmiss_report::text::{Options, render};
use unicode_width::UnicodeWidthStr;

fn plain(builder: support::Builder, options: Options) -> String {
    anstream::adapter::strip_str(&render(&builder.report(), options)).to_string()
}

#[test]
fn the_run_queue_on_one_page() {
    let text = plain(support::run_queue(), Options::default());
    assert!(text.lines().count() <= 48, "{} lines", text.lines().count());
    assert!(text.lines().all(|l| l.width() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_noisy_calibration_is_named_under_the_machine() {
    use nearmiss_record::machine::Noise;
    let mut builder = support::healthy();
    let caution = Some("host was calibrated beside other work (3 other tasks ran or waited); run again".to_owned());
    builder.model.machine.noise = Some(Noise { caution, ..Noise::default() });
    let text = plain(builder, Options::default());
    let caution = text.find("\nCaution   host was calibrated beside other work").unwrap_or_else(|| panic!("{text}"));
    assert!(text.find("\nMachine ").unwrap() < caution && caution < text.find("\nMeasured ").unwrap(), "{text}");
}

#[test]
fn a_healthy_program() {
    insta::assert_snapshot!(plain(support::healthy(), Options::default()));
}

#[test]
fn shares_of_recorded_parts_have_ranges() {
    use nearmiss_record::model::{ShareRange, StallRanges};
    let mut builder = support::run_queue();
    let range = |low, high| ShareRange { low, high };
    let levels = vec![range(0.0, 0.0), range(0.0, 0.001), range(0.4, 0.55)];
    let memory_local = range(0.052, 0.73);
    builder.model.ranges = Some(StallRanges { all: range(0.8, 0.95), levels, memory_local, ..StallRanges::default() });
    let text = plain(builder, Options::default());
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Where the")).take(6).collect();
    let wanted = [
        "Where the modelled cycles went (last: of the whole run, 95% confidence)",
        "  computing                       25.0 M   10.8%     5.0% to 20%",
        "  waiting for L2                  58,800    0.0%    0.0% to 0.1%",
        "  waiting for L3                   110 M   47.7%      40% to 55%",
        "  waiting for another CPU         4.86 M    2.1%    0.0% to 0.0%",
        "  waiting for memory              91.2 M   39.4%     5.2% to 73%",
    ];
    for (row, wanted) in rows.iter().zip(wanted) {
        assert!(row.starts_with(wanted), "{row}");
    }
}

#[test]
fn look_ups_of_pages_are_approximate_where_the_filter_dropped_some() {
    use nearmiss_record::model::Translation;
    let page = |index_bits| {
        let mut builder = support::healthy();
        builder.manifest.filter.index_bits = index_bits;
        builder.model.translation = Some(Translation { first_misses: 3_000, walks: 900, large_walks: 100 });
        let text = plain(builder, Options::default());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let counts = "3,000 look-ups of data missed the first level, 1,000 walked the page table (100 to pages of 2 MiB)";
    assert!(page(0).contains(counts), "{}", page(0));
    assert!(!page(0).contains("; approximate, as the trace's filter"));
    assert!(
        page(6).contains(&format!("{counts}; of all that ran; approximate, as the trace's filter of several lines"))
    );
}
