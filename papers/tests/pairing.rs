//! Scratch.
use nearmiss_papers::pacing::plan::Scale;
#[test]
fn all() {
    let scale = if std::env::var("S").is_ok() { Scale::Small } else { Scale::Trial };
    let start = std::time::Instant::now();
    let record =
        nearmiss_papers::paper("pairing").unwrap().run(None, scale, std::path::Path::new(""), &|_, _| ()).unwrap();
    println!("{}", nearmiss_papers::text::render(&record));
    println!("{:.1} s", start.elapsed().as_secs_f64());
}
