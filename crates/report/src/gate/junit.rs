//! A gate as JUnit XML: a test a figure.

use super::words::{cause, change, headline, mean, noise, recorder, ruling, whole_title};
use nearmiss_record::gate::{GateRecord, JudgedFigure, Ruling};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite, XmlString};

/// The verdict as a suite with the figures as its tests; those beyond their limits failed.
pub fn junit(record: &GateRecord) -> String {
    let mut suite = TestSuite::new("nearmiss gate");
    suite.set_system_out(format!("{}\n{}", headline(record), recorder(record)));
    suite.add_test_cases(record.figures.iter().map(test));
    let mut report = Report::new("nearmiss gate");
    report.add_test_suite(suite);
    // Nothing of it can fail: it is written to memory, and its names are made to be XML.
    let page = report.to_string().unwrap_or_default();
    // The schema of Jenkins (junit-10.xsd) has this count for each suite, not for all of them.
    page.replacen(" skipped=\"0\"", "", 1)
}

fn test(figure: &JudgedFigure) -> TestCase {
    let mut status = TestCaseStatus::success();
    if figure.ruling == Ruling::Beyond {
        status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type("worse");
        status.set_message(message(figure));
        let causes: Vec<String> = figure.causes.iter().map(|found| cause(found, figure)).collect();
        status.set_description(causes.join("\n"));
    }
    let mut test = TestCase::new(whole_title(&figure.name), status);
    test.set_classname(XmlString::from(format!("nearmiss.gate.{}", figure.name)));
    test.set_system_out(message(figure));
    test
}

fn message(figure: &JudgedFigure) -> String {
    format!(
        "{}: {} → {}, {} (noise {}), {}",
        whole_title(&figure.name),
        mean(figure.old),
        mean(figure.new),
        change(figure),
        noise(figure),
        ruling(figure)
    )
}
