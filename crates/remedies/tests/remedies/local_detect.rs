//! Why reads go to another node's memory: each cause is separated from the others, counted exactly, and its twin is
//! none.
#![allow(clippy::unwrap_used)]

use nearmiss_analysis::{Case, RehearsalRequest, Traced};
use nearmiss_machine::describe::{cut, filter_for, preset};
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::figures::Cell;
use nearmiss_record::finding::{Finding, Prediction, Reach};
use nearmiss_record::policy::Order;
use nearmiss_record::reference::{ControlKind, Kind, Record};
use nearmiss_record::run::{MANIFEST, RunDir, SYMBOLS, TRACE};
use nearmiss_record::side::{Insn, SideTables};
use nearmiss_record::symbols::{KernelPages, PageUse, SCHEMA, Symbols};
use nearmiss_record::trace::{self, TraceHeader, TraceWriter};
use nearmiss_record::units::InsnId;
use nearmiss_remedies::local::REMEDY;
use std::path::Path;

const BASE: u64 = 0x7f00_0000_0000;
const NODE_BYTES: u64 = 1 << 30;
const LINES_A_PAGE: u64 = 4096 / 32;
const PAGES: u64 = 32;
const PROCESS: u64 = 100;
const ALLOC: u64 = 1;
const FREE: u64 = 2;

/// CPUs 0 and 1 are node 0, CPUs 2 and 3 node 1; memory below `NODE_BYTES` is node 0's.
#[derive(Default)]
struct Script(Vec<(u32, Vec<Record>)>);

impl Script {
    fn begin() -> Self {
        let mut script = Script::default();
        script.runs(0, PROCESS);
        let mut mark = vec![Record::control(ControlKind::Mark, 1, 0, 0)];
        mark.resize(4, Record::default());
        script.0.push((0, mark));
        script
    }

    /// Lets this CPU run this thread of the process from here on.
    fn runs(&mut self, cpu: u32, thread: u64) -> &mut Self {
        let mut records = vec![Record::control(ControlKind::Switch, 0x1000 + thread, 0, thread | PROCESS << 32)];
        records.resize(6, Record::default());
        self.0.push((cpu, records));
        self
    }

    /// References each line of the pages once.
    fn each(&mut self, cpu: u32, kind: Kind, pages: std::ops::Range<u64>) -> &mut Self {
        let lines = pages.start * LINES_A_PAGE..pages.end * LINES_A_PAGE;
        let record = |line: u64| Record::reference(kind, BASE + line * 32, 8, 0, InsnId(1), (line * 32) >> 12, 4);
        for lines in lines.collect::<Vec<_>>().chunks(2000) {
            self.0.push((cpu, lines.iter().map(|line| record(*line)).collect()));
        }
        self
    }

    fn writes(&mut self, cpu: u32, pages: std::ops::Range<u64>) -> &mut Self {
        self.each(cpu, Kind::Store, pages)
    }

    fn reads(&mut self, cpu: u32, pages: std::ops::Range<u64>) -> &mut Self {
        self.each(cpu, Kind::Load, pages)
    }

    /// The process maps its pages from a file: a `PERF_RECORD_MMAP2` of `perf_event_open(2)`.
    fn maps(&mut self, path: &str) -> &mut Self {
        self.maps_at(0, path)
    }

    /// The process maps the file from this page on.
    fn maps_at(&mut self, page: u64, path: &str) -> &mut Self {
        let mut body: Vec<u8> = [PROCESS as u32; 2].into_iter().flat_map(u32::to_le_bytes).collect();
        let start = BASE + page * 4096;
        body.extend([start, 8 * PAGES * 4096, 0, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes));
        body.extend([5u32, 2].into_iter().flat_map(u32::to_le_bytes));
        body.extend(path.as_bytes());
        body.resize(body.len().next_multiple_of(8) + 8, 0);
        let mut bytes: Vec<u8> = 10u32.to_le_bytes().into_iter().chain(2u16.to_le_bytes()).collect();
        bytes.extend((8 + body.len() as u16).to_le_bytes());
        bytes.extend(body);
        let mut records = vec![Record::control(ControlKind::Maps, 0, 0, bytes.len() as u64)];
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        records.extend(bytes.chunks(16).map(|pair| Record { a: word(&pair[..8]), b: word(&pair[8..]) }));
        self.0.push((0, records));
        self
    }

    /// A block that begins at this page.
    fn heap(&mut self, cpu: u32, op: u64, page: u64) -> &mut Self {
        let call = Record::control(ControlKind::Heap, op, 0, 0);
        let bytes = if op == ALLOC { PAGES * 4096 } else { 0 };
        self.0.push((cpu, vec![call, Record { a: BASE + page * 4096, b: bytes }, Record::default()]));
        self
    }

    fn case(&self, place: &Path) -> Case {
        self.case_of(place, Symbols { schema: SCHEMA.to_owned(), ..Symbols::default() })
    }

    fn case_of(&self, place: &Path, symbols: Symbols) -> Case {
        let machine = cut(&preset("pentium3-xeon-numa-2x2").unwrap().machine().unwrap(), 4);
        let run = RunDir::create(place, "run").unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/fixtures/healthy").join(MANIFEST);
        std::fs::copy(fixture, run.file(MANIFEST)).unwrap();
        run.write_json(SYMBOLS, &symbols).unwrap();
        let mut filter = filter_for(&machine);
        filter.heap = true;
        let node_bytes = vec![NODE_BYTES; 2];
        let header =
            TraceHeader { schema: trace::SCHEMA.to_owned(), cpus: 4, filter, node_bytes, ..TraceHeader::default() };
        let mut writer = TraceWriter::create(&run.file(TRACE), &header).unwrap();
        for (seq, (vcpu, records)) in self.0.iter().enumerate() {
            let (seq, vcpu, count) = (seq as u64, *vcpu, records.len() as u32);
            writer.chunk(&ChunkHeader { seq, vcpu, records: count, ..ChunkHeader::default() }, records).unwrap();
        }
        writer.finish(&SideTables { insns: vec![Insn::default(); 2], ..SideTables::default() }).unwrap();
        let traced = Traced::open(&run, Some(&machine), Some(Order::Recorded), &|_, _| ()).unwrap();
        Case::from(traced)
    }
}

/// Returns the findings, and the notes beyond.
fn found(script: &Script) -> (Vec<Finding>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    judged(&script.case(place.path()))
}

fn judged(case: &Case) -> (Vec<Finding>, Vec<String>) {
    let suspicions = (REMEDY.detect)(case).unwrap();
    let findings = suspicions.iter().map(|suspicion| suspicion.finding(case).unwrap()).collect();
    let beyond = suspicions.iter().filter_map(|suspicion| suspicion.beyond_limit(case).unwrap()).collect();
    (findings, beyond)
}

fn only(script: &Script) -> Finding {
    let (findings, _) = found(script);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.into_iter().next().unwrap()
}

fn objects_line(finding: &Finding) -> &str {
    &finding.evidence.lines.iter().find(|line| line.label == "Objects").unwrap().text
}

#[test]
fn pages_that_another_task_touched_first_get_homes() {
    let mut script = Script::begin();
    script.writes(0, 0..PAGES).runs(2, 102).reads(2, 0..PAGES).runs(1, 101).reads(1, PAGES..2 * PAGES);
    let finding = only(&script);
    let reads = PAGES * LINES_A_PAGE;
    // The writer's own reads for ownership are local, the reader's are not.
    let wanted = "4,096 of its 8,192 bus reads are remote, because another task touched it first";
    assert_eq!(reads, 4096);
    assert!(objects_line(&finding).contains(wanted), "{}", objects_line(&finding));
    assert!(finding.cause.starts_with("thread 100 touched it first") && finding.cause.contains("thread 102 uses it"));
    // No call that requested it is known.
    assert!(matches!(finding.reach, Reach::Inside { .. }) && finding.apply.is_none());
    // The lines would come from the writer's caches all the same, and the writer would read remotely too.
    assert_eq!(finding.prediction.placements.len(), 5);
    assert!(finding.prediction.gain < 0.0, "{}", finding.prediction.gain);
    // Pages of its own node take the table's place in the reader's caches.
    let far = NODE_BYTES / 4096;
    script.reads(2, far..far + 8 * PAGES).reads(2, 0..PAGES).reads(2, far..far + 8 * PAGES).reads(2, 0..PAGES);
    assert!(only(&script).prediction.gain > 0.02, "a second pass gains");
}

#[test]
fn pages_that_their_own_task_touched_first_are_no_finding() {
    let mut script = Script::begin();
    script.writes(0, 0..PAGES).reads(0, 0..PAGES).reads(1, 0..PAGES);
    assert!(found(&script).0.is_empty());
}

/// Page 0 of a task on node 0 lies on node 1, where another task touched the rest of the large page.
#[test]
fn pages_that_the_kernel_put_elsewhere_get_a_home_and_no_binding() {
    let mut script = Script::begin();
    let far = NODE_BYTES / 4096;
    script.writes(0, far..far + 8 * PAGES).reads(0, far..far + 8 * PAGES);
    let finding = only(&script);
    assert!(objects_line(&finding).ends_with("the kernel put it on another node than that of its first touch."));
    assert!(finding.cause.contains("the rest of its large page (2 MiB)"), "{}", finding.cause);
    assert!(finding.treatment.starts_with("Homes of its pages") && finding.prediction.gain > 0.2, "{finding:#?}");
    let place = tempfile::tempdir().unwrap();
    let case = script.case(place.path());
    // A binding does not move it, despite the first touch.
    let remote: Vec<u64> = rows(&case, &["0", "2", "used"]).iter().map(|row| row.1).collect();
    assert_eq!((remote[1], remote[2], remote[3]), (remote[0], 0, 0), "{remote:?}");
}

#[test]
fn a_task_that_moved_is_bound() {
    let mut script = Script::begin();
    script.writes(0, 0..PAGES).runs(0, 0).runs(2, PROCESS).reads(2, 0..PAGES);
    let finding = only(&script);
    assert!(objects_line(&finding).ends_with("because the task moved between nodes."), "{}", objects_line(&finding));
    let apply = finding.apply.unwrap();
    assert_eq!(apply[..5], ["nearmiss", "apply", "local", "--bind", "round-robin"]);
    // The table fits the caches of the CPU that wrote it: all that the task waits for where it moved to is saved.
    let Prediction { gain, low, high, placements, .. } = finding.prediction;
    assert!(placements.len() == 5 && low <= gain && gain <= high, "{low} {gain} {high}");
    let most = finding.evidence.most_gain;
    assert!(gain > 0.9 * most && gain <= most, "{gain} of {most}");
    let approximate = finding.prediction.approximate;
    assert!(approximate[0].starts_with("Tasks are bound in the recorded order"), "{approximate:?}");
    assert!(approximate[1].contains("`--carry tasks` goes by task"), "{approximate:?}");
}

#[test]
fn a_binding_gains_no_more_than_what_moved_could_save() {
    // One task fills a table and another one reads it from the other node: a matter of homes. The first one moves, with a page.
    let mut script = Script::begin();
    let (table, page) = (0..8 * PAGES, 8 * PAGES..8 * PAGES + 1);
    script.writes(0, table.clone()).writes(0, page.clone()).runs(0, 0).runs(2, 102);
    (0..8).for_each(|_| {
        script.reads(2, table.clone());
    });
    script.runs(2, PROCESS).reads(2, page);
    let (findings, _) = found(&script);
    let by = |begins: &str| findings.iter().find(|finding| finding.treatment.starts_with(begins)).unwrap();
    let (homes, bound) = (by("Homes of its pages"), by("Each task on a CPU of its own"));
    assert!(homes.prediction.gain > 0.05, "{:?}", homes.prediction);
    assert!(bound.prediction.high < 0.02, "both on one node would save {:?}", bound.prediction);
}

/// Name, remote reads, cycles and share saved of each row.
fn rows(case: &Case, policies: &[&str]) -> Vec<(String, u64, u64, f64)> {
    let suspicions = (REMEDY.detect)(case).unwrap();
    let values = policies.iter().map(|text| (REMEDY.parameter.parse)(text).unwrap()).collect();
    let request = RehearsalRequest { values, ..RehearsalRequest::default() };
    let row = |row: &Vec<Cell>| match (&row[0], &row[2], &row[6], &row[7]) {
        (Cell::Text(name), Cell::Count(remote), Cell::Cycles(cycles), Cell::Share(saved)) => {
            (name.clone(), *remote, *cycles, *saved)
        }
        other => panic!("{other:?}"),
    };
    suspicions[0].rehearse(case, &request).unwrap().table.rows.iter().map(row).collect()
}

#[test]
fn a_rehearsal_binds_tasks_by_any_plan() {
    let place = tempfile::tempdir().unwrap();
    let mut script = Script::begin();
    // Too large for the second level, so that it is read from memory each time.
    let table = 0..8 * PAGES;
    script.writes(0, table.clone()).runs(0, 0).runs(2, PROCESS).reads(2, table.clone());
    // A second thread reads it once, where the first one was.
    script.runs(0, 101).reads(0, table);
    let case = script.case(place.path());
    let rows = rows(&case, &["round-robin", "compact", "0/2/1/3", "3/3", "interleave"]);
    let names: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
    assert_eq!(names, ["as it was", "round-robin", "compact", "0/2/1/3", "3/3", "interleave"]);
    let remote: Vec<u64> = rows.iter().map(|row| row.1).collect();
    let lines = 8 * PAGES * LINES_A_PAGE;
    // The first thread's table is near it wherever it is bound, and far from the second one where nodes take turns.
    assert_eq!(remote[..5], [lines, lines, 0, lines, 0], "{rows:?}");
    assert_eq!((rows[1].2, rows[1].3), (rows[3].2, rows[3].3), "the same places by another name");
    assert!(rows[2].3 > rows[1].3 + 0.1 && rows[2].3 > 0.2, "{rows:?}");
    for wrong in ["first", "0//1", "0-3", ""] {
        assert!((REMEDY.parameter.parse)(wrong).unwrap_err().contains("is none of"), "{wrong}");
    }
    let off = (REMEDY.parameter.parse)("0/9").unwrap();
    let suspicions = (REMEDY.detect)(&case).unwrap();
    let refused = suspicions[0]
        .rehearse(&case, &RehearsalRequest { values: vec![off], ..RehearsalRequest::default() })
        .unwrap_err();
    assert!(refused.to_string().contains("CPU 9 is not one of 0-3"), "{refused}");
}

#[test]
fn pages_from_before_a_bound_task_came_stay() {
    let mut script = Script::begin();
    let (table, file) = (0..8 * PAGES, 8 * PAGES..16 * PAGES);
    script.maps_at(file.start, "/srv/table").writes(0, table.clone());
    script.runs(0, 0).runs(2, PROCESS).reads(2, table.clone()).reads(2, file.clone());
    let place = tempfile::tempdir().unwrap();
    let pages = vec![(file.start, file.end - file.start, 0)];
    let symbols = Symbols {
        schema: SCHEMA.to_owned(),
        kernel_pages: KernelPages { uses: vec![PageUse::PageCache], runs: pages },
        ..Symbols::default()
    };
    let case = script.case_of(place.path(), symbols);
    let remote: Vec<u64> = rows(&case, &["0", "2"]).iter().map(|row| row.1).collect();
    let lines = 8 * PAGES * LINES_A_PAGE;
    assert_eq!(remote, [2 * lines, 0, lines], "the file is on node 0");
}

#[test]
fn a_mapped_file_that_nobody_stores_to_is_a_file_s_contents_though_its_pages_are_gone_at_the_end() {
    let mut script = Script::begin();
    // The page cache of node 0 had it, since a task of that node read it first.
    script.maps_at(0, "/tmp/deleted").reads(0, 0..PAGES).runs(2, 102).reads(2, 0..PAGES);
    let (findings, _) = found(&script);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].treatment, "None by homes of the program's own memory");
    assert!(findings[0].apply.is_none());
}

#[test]
fn pages_that_all_nodes_read_are_interleaved_and_those_they_write_are_not() {
    let mut script = Script::begin();
    script.writes(0, 0..PAGES).runs(1, 101).runs(2, 102).reads(1, 0..PAGES).reads(2, 0..PAGES);
    let finding = only(&script);
    assert!(finding.treatment.starts_with("Its pages on all nodes in turn"), "{}", finding.treatment);
    let mut script = Script::begin();
    script.writes(0, 0..PAGES).runs(1, 101).runs(2, 102);
    (0..3).for_each(|_| {
        script.reads(1, 0..PAGES).writes(1, 0..PAGES).reads(2, 0..PAGES).writes(2, 0..PAGES);
    });
    let (findings, beyond) = found(&script);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].treatment, "None by homes: the lines pass between the nodes wherever they lie");
    assert!(findings[0].apply.is_none());
    assert!(beyond[0].ends_with("where tasks of several nodes write it, which is not a matter of homes"), "{beyond:?}");
}

/// A block is filled on the node where it lies, read on the other one, and freed by this CPU, over and over.
fn handed(script: &mut Script, fills: u32, reads: u32, frees: u32, page: u64) {
    let block = page..page + PAGES;
    script.heap(fills, ALLOC, page).writes(fills, block.clone()).reads(reads, block).heap(frees, FREE, page);
}

/// Blocks pass from node 0 to node 1, and back where both nodes fill some.
fn exchanged(frees_its_own: bool, both: bool) -> Script {
    let mut script = Script::begin();
    script.runs(2, 102);
    for _ in 0..4 {
        handed(&mut script, 0, 2, if frees_its_own { 0 } else { 2 }, 0);
        if both {
            handed(&mut script, 2, 0, if frees_its_own { 2 } else { 0 }, NODE_BYTES / 4096);
        }
    }
    script
}

#[test]
fn pools_are_offered_where_blocks_are_freed_elsewhere_and_nowhere_else() {
    let finding = only(&exchanged(false, true));
    assert_eq!(finding.apply.unwrap()[3], "--pools");
    assert_eq!((finding.prediction.of.to_string(), finding.prediction.low), ("the cycles at most".to_owned(), 0.0));
    let blocks = finding.evidence.lines.iter().find(|line| line.label == "Blocks").unwrap();
    assert_eq!(blocks.text, "100% of the blocks that were handed out again had been freed on another node.");
    for passed in [exchanged(true, true), exchanged(true, false), exchanged(false, false)] {
        let finding = only(&passed);
        assert_eq!(finding.treatment, "None by homes: the lines pass between the nodes wherever they lie");
    }
    let (findings, _) = found(&exchanged(true, true));
    assert!(findings.iter().all(|finding| finding.apply.as_ref().is_none_or(|apply| apply[3] != "--pools")));
}

#[test]
fn a_file_that_lies_elsewhere_is_reported_and_a_library_is_not() {
    let mut script = Script::begin();
    script.maps("/srv/table").runs(2, 102).reads(2, 0..PAGES);
    let of = |modules: &[&str]| {
        let place = tempfile::tempdir().unwrap();
        let symbols = Symbols {
            schema: SCHEMA.to_owned(),
            modules: modules.iter().map(|module| (*module).to_owned()).collect(),
            kernel_pages: KernelPages { uses: vec![PageUse::PageCache], runs: vec![(0, PAGES, 0)] },
            ..Symbols::default()
        };
        judged(&script.case_of(place.path(), symbols)).0
    };
    let table = of(&["/bin/server"]);
    assert_eq!(table.len(), 1);
    assert!(objects_line(&table[0]).starts_with("`/srv/table`: 4,096 of its 4,096 bus reads are remote"));
    assert_eq!((table[0].treatment.as_str(), &table[0].apply), ("None by homes of the program's own memory", &None));
    // Every program reads its libraries once, from where they lie.
    assert!(of(&["/bin/server", "/srv/table"]).is_empty());
}

#[test]
fn a_rehearsal_has_a_row_for_each_home_and_the_first_is_as_it_was() {
    let mut script = Script::begin();
    script.writes(0, 0..PAGES).runs(2, 102).reads(2, 0..PAGES);
    let place = tempfile::tempdir().unwrap();
    let case = script.case(place.path());
    let suspicions = (REMEDY.detect)(&case).unwrap();
    let table = suspicions[0].rehearse(&case, &RehearsalRequest::default()).unwrap().table;
    let names: Vec<String> = table.rows.iter().map(|row| format!("{:?}", row[0])).collect();
    let wanted = ["as it was", "first-touch", "interleave", "used"].map(|name| format!("Text({name:?})"));
    assert_eq!(names, wanted);
    let remote: Vec<String> = table.rows.iter().map(|row| format!("{:?}", row[2])).collect();
    // 4,096 lines are filled on node 0 and read on node 1: one of the two is remote, with any home.
    assert_eq!(remote, ["Count(4096)"; 4].map(str::to_owned));
}

#[test]
fn a_machine_of_one_node_has_nothing_to_suspect() {
    let place = tempfile::tempdir().unwrap();
    let mut script = Script::begin();
    script.writes(0, 0..PAGES).runs(2, 102).reads(2, 0..PAGES);
    let mut case = script.case(place.path());
    let machine = cut(&preset("pentium3-xeon-8way").unwrap().machine().unwrap(), 4);
    let run = case.traced.take().unwrap().run;
    case.traced = Some(Traced::open(&run, Some(&machine), Some(Order::Recorded), &|_, _| ()).unwrap());
    assert!((REMEDY.detect)(&case).unwrap().is_empty());
}
