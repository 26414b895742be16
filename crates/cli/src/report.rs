//! The verb `report`.

use crate::case::recorded_for;
use crate::kept_findings::kept_findings;
use crate::order::OrderArg;
use crate::output::{flat, line_width, print, terminal_width, write};
use crate::progress;
use crate::report_form::Form;
use crate::{compared_report, observed_report, verified_report};
use nearmiss_record::model::{FunctionRow, ModelRecord};
use nearmiss_record::policy::Order;
use nearmiss_record::run::{self, Manifest, RunDir, RunKind};
use nearmiss_record::trace::{self, TraceReader};
use nearmiss_record::words::counted;
use nearmiss_report::code::{self, Options, hottest, named, render};
use nearmiss_report::load::Report;
use nearmiss_report::{callgrind, html, json, pprof, stacks, text};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::slice::from_ref;

/// Arguments of `nearmiss report`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss report                      the newest run
  nearmiss report RUN -m zen3-milan    its kept trace on another machine
  nearmiss report --html               a page beside the run, its path on stdout
  nearmiss report --code               lines and instructions of the functions with the most cycles
  nearmiss report --function memcpy    the same of one function; of an observed run its callers too
  nearmiss report --kernel-structures --during tcp_v4_rcv
                                       fields of tcp_sock and others, and their lines a packet
  nearmiss report --log                every lock wait and poll that observe --log kept
  nearmiss report VERIFIED             the verdict of a run of verify, again
  nearmiss report --compare RUN1 RUN2  two runs of trace, or two of observe, side by side
  nearmiss report --compare B1 B2 B3 --against A1 A2 A3
                                       several a side: what of a difference is noise")]
pub struct Args {
    /// The run's directory [default: the newest one under ./nearmiss-runs]
    run: Option<PathBuf>,
    /// Set two runs of `trace`, or two of `observe`, side by side, or several of each side with --against; with --json,
    /// --html or as text
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["run", "machine", "order"])]
    compare: Vec<PathBuf>,
    /// The runs that those of --compare are compared with
    #[arg(long, value_name = "RUN", num_args = 1.., requires = "compare")]
    against: Vec<PathBuf>,
    /// Model the kept trace again, on this machine: `host`, a preset, or a machine file
    #[arg(short, long, value_name = "MACHINE")]
    machine: Option<String>,
    /// Model the kept trace again, with the records of several CPUs in this order
    #[arg(long, value_enum)]
    order: Option<OrderArg>,
    #[command(flatten)]
    form: Form,
    /// Print which fields of the kernel's structures are read and written, by which functions, and on how many lines; as
    /// text or with --json, of a run of `trace --carry fields`
    #[arg(long, conflicts_with_all = ["compare", "machine", "order"])]
    kernel_structures: bool,
    /// With --kernel-structures: count during calls of these kernel functions alone, and lines a call
    #[arg(long, value_name = "FUNCTION,…", value_delimiter = ',', requires = "kernel_structures")]
    during: Vec<String>,
    /// Rows of the text's longest table; structures with --kernel-structures
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    top: u16,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.compare.is_empty() {
        let (before, after) = sides(&args.compare, &args.against)?;
        return compared_report::write_form(before, after, &args.form, args.top.into());
    }
    let run = match &args.run {
        Some(path) => RunDir::open(path).map_err(flat)?,
        None => RunDir::newest(Path::new(run::DEFAULT_PARENT)).map_err(flat)?,
    };
    let kind = run.kind();
    if kind != RunKind::Traced && (args.machine.is_some() || args.order.is_some() || args.form.validate) {
        anyhow::bail!(
            "{}: {kind}, which has no trace: -m, --order and --validate are for runs of `nearmiss trace`",
            run.path().display()
        );
    }
    if kind != RunKind::Traced && args.kernel_structures {
        anyhow::bail!(
            "{}: {kind}: --kernel-structures is for runs of `nearmiss trace --carry fields`",
            run.path().display()
        );
    }
    match kind {
        RunKind::Observed => observed_report::write_form(&run, &args.form, args.top.into()),
        RunKind::Verified => verified_report::write_form(&run, &args.form),
        RunKind::Traced => write_form(&run, args),
    }
}

/// The runs of both sides of a comparison.
fn sides<'a>(compare: &'a [PathBuf], against: &'a [PathBuf]) -> anyhow::Result<(&'a [PathBuf], &'a [PathBuf])> {
    match (compare, against) {
        ([before, after], []) => Ok((from_ref(before), from_ref(after))),
        (_, []) => anyhow::bail!(
            "--compare: {} given; give two, or several a side: --compare B1 B2 B3 --against A1 A2 A3",
            counted(compare.len() as u64, "run")
        ),
        _ => Ok((against, compare)),
    }
}

/// A run of `trace` in the requested form.
fn write_form(run: &RunDir, args: Args) -> anyhow::Result<ExitCode> {
    if args.form.only_of_observed_runs() {
        anyhow::bail!(
            "{}: a traced run: --firefox, --perfetto and --log are for runs of `nearmiss observe`; use --html, \
             --callgrind, --pprof or --folded",
            run.path().display()
        );
    }
    if args.kernel_structures {
        return kernel_structures(run, &args);
    }
    if args.form.validate {
        return validate(run);
    }
    let mut report = match args.machine.is_some() || args.order.is_some() || run.is_to_be_modelled() {
        true => modelled_again(run, args.machine.as_deref(), args.order)?,
        false => Report::load(run).map_err(flat)?,
    };
    if args.form.json {
        print(&json::render(&report)?)?;
    } else if let Some(wanted) = args.form.function.clone().map(Some).or(args.form.code.clone()) {
        print(&annotated(run, report, wanted.as_deref())?)?;
    } else if let Some(file) = args.form.html {
        report.texts = code::texts(run, &report, &hottest(&report, html::FUNCTIONS_WITH_CODE));
        report.findings = kept_findings(run).filter(|findings| findings.machine == report.model.machine.name);
        let file = file.unwrap_or_else(|| run.file(run::REPORT));
        write(&file, html::render(&report, html::Options::default()).as_bytes())?;
    } else if let Some(file) = args.form.callgrind {
        write(&file, callgrind::render(&report).as_bytes())?;
    } else if let Some(file) = args.form.pprof {
        write(&file, &pprof::render(&report)?)?;
    } else if let Some(file) = args.form.folded {
        write(&file, stacks::folded(&report.model).as_bytes())?;
    } else {
        let whole_names = line_width().is_none();
        print(&text::render(&report, text::Options { width: terminal_width(), top: args.top.into(), whole_names }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fields of the kernel's structures, of a run that kept every access.
fn kernel_structures(run: &RunDir, args: &Args) -> anyhow::Result<ExitCode> {
    if !args.form.is_basic() || args.form.html.is_some() {
        anyhow::bail!("--kernel-structures has text and --json only");
    }
    let _counting = progress::of("counting");
    let record = nearmiss_analysis::kernel_structures(run, &args.during)?;
    print(&match args.form.json {
        true => format!("{}\n", serde_json::to_string(&record)?),
        false => nearmiss_report::kernel_structures::render(&record, terminal_width(), args.top.into()),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// From the kept trace. A machine that is named needs no record of an earlier model.
fn modelled_again(run: &RunDir, machine: Option<&str>, order: Option<OrderArg>) -> anyhow::Result<Report> {
    let mut manifest: Manifest = run.read_json(run::MANIFEST).map_err(flat)?;
    let earlier = run.read_json::<ModelRecord>(run::MODEL);
    let earlier_order = earlier.as_ref().map_or(Order::Recorded, |model| model.order);
    let machine = match machine {
        Some(name) => nearmiss_host::load(name)?,
        None if run.is_to_be_modelled() => recorded_for(run, &manifest)?,
        None => earlier.map_err(flat)?.machine,
    };
    if !run.file(run::TRACE).is_file() {
        anyhow::bail!("{}: this run kept no trace to model again; record it without --no-trace", run.path().display());
    }
    let modelling = progress::of("modelling");
    let order = order.map_or(earlier_order, Into::into);
    let model = nearmiss_analysis::model_again(run, &machine, order, &|done, of| modelling.at(done, of))?;
    drop(modelling);
    manifest.machine.clone_from(&model.machine.name);
    Report::new(manifest, model).map_err(flat)
}

/// Functions with their lines and instructions: those of a name, or the hottest.
fn annotated(run: &RunDir, mut report: Report, name: Option<&str>) -> anyhow::Result<String> {
    const HOTTEST: usize = 3;
    let rows = match name {
        Some(name) => named(&report, name).map_err(|why| not_found(run, name, why))?,
        None => hottest(&report, HOTTEST),
    };
    let rows: Vec<FunctionRow> = rows.into_iter().cloned().collect();
    let functions: Vec<&FunctionRow> = rows.iter().collect();
    report.texts = code::texts(run, &report, &functions);
    Ok(render(&report, &functions, Options { width: line_width() }))
}

fn not_found(run: &RunDir, name: &str, why: String) -> anyhow::Error {
    let hint = if Path::new(name).is_dir() { "; a run goes before --code" } else { "" };
    anyhow::anyhow!("{}: {why}{hint}", run.path().display())
}

/// Reports how many records the trace holds, or which is the first that cannot be.
fn validate(run: &RunDir) -> anyhow::Result<ExitCode> {
    let file = run.file(run::TRACE);
    if !file.is_file() {
        anyhow::bail!("{}: this run kept no trace; record it without --no-trace", run.path().display());
    }
    let records = TraceReader::open(&file).and_then(|mut t| trace::validate(&mut t)).map_err(flat)?;
    print(&format!("{}: sound, {records} records\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}
