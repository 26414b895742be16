use super::*;

#[test]
fn the_list_fits_a_page() {
    let machines = Machines::all().expect("good presets").machines;
    let text = list(&machines, 100);
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_output_of_show_is_a_machine_file() {
    for preset in PRESETS {
        let text = show(preset.name, None, false).expect("shown");
        assert_eq!(describe::parse("again", &text).expect("reads").name, preset.name);
        let text = show(preset.name, Some(2), false).expect("shown");
        assert!(describe::parse("again", &text).expect("reads").topology.cpus() <= 2);
    }
}

#[test]
fn json_has_a_schema_and_sizes_in_bytes() {
    let value: serde_json::Value = serde_json::from_str(&show("zen4-genoa", None, true).expect("shown")).expect("JSON");
    assert_eq!(value["schema"], "nearmiss/machine/1");
    assert_eq!(value["machine"]["cache"][2]["size"], 1 << 20);
}

#[test]
fn an_unknown_machine_is_one_line_that_lists_what_there_is() {
    let error = show("zen9", None, false).expect_err("unknown").to_string();
    assert!(error.contains("zen9") && error.contains("zen4-genoa") && error.lines().count() == 1, "{error}");
    let error = show("./no-such.toml", None, false).expect_err("no file").to_string();
    assert!(error.contains("no-such.toml") && error.lines().count() == 1, "{error}");
}
