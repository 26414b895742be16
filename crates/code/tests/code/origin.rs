//! Origins of addresses, on functions as compilers write them.

use crate::support::Assembled;
use nearmiss_code::{Chain, CodeMap, Given, Origin};
use nearmiss_record::code::CodeBlock;
use nearmiss_record::units::InsnId;

struct Functions {
    assembled: Assembled,
    map: CodeMap,
}

impl Functions {
    fn of(source: &str) -> Functions {
        let assembled = Assembled::new(source);
        let map = assembled.map();
        Functions { assembled, map }
    }

    fn origin(&mut self, label: &str) -> Origin {
        self.map.origin(self.assembled.id(label)).expect("known code").clone()
    }

    /// The address comes through these loads alone, and all of it is known.
    fn comes_through(&mut self, label: &str, loads: &[&str]) {
        let mut expected: Vec<_> = loads.iter().map(|load| self.assembled.id(load)).collect();
        expected.sort_unstable();
        let origin = self.origin(label);
        assert_eq!((origin.loads, origin.unknown), (expected, false), "{label}");
        assert_eq!(origin.own_chain.is_some(), loads.contains(&label), "{label}");
    }

    /// Instructions from these loads to the access, at least.
    fn lies(&mut self, label: &str, distances: &[(&str, u32)]) {
        let mut expected: Vec<_> = distances.iter().map(|(load, far)| (self.assembled.id(load), *far)).collect();
        expected.sort_unstable();
        let origin = self.origin(label);
        assert_eq!(origin.loads.into_iter().zip(origin.distances).collect::<Vec<_>>(), expected, "{label}");
    }

    /// The way of the branch is decided by the values of these loads alone, and by what callers gave.
    fn decides(&mut self, label: &str, loads: &[&str]) {
        let mut expected: Vec<_> = loads.iter().map(|load| self.assembled.id(load)).collect();
        expected.sort_unstable();
        let decision = self.map.decision(self.assembled.id(label)).expect("known code");
        assert_eq!(decision.loads, expected, "{label}");
    }

    fn is_chained(&self, label: &str) -> bool {
        self.map.is_chained(self.assembled.id(label))
    }

    fn chains(&mut self, label: &str, instructions: u32, cycles: f32) {
        assert_eq!(self.origin(label).own_chain, Some(Chain { instructions, cycles }), "{label}");
    }
}

#[test]
fn optimized_loops() {
    let mut functions = Functions::of("optimized.s");
    functions.comes_through("list_next", &["list_value", "list_next"]);
    functions.comes_through("list_value", &["list_value", "list_next"]);
    functions.chains("list_next", 4, 5.0);
    functions.comes_through("array_element", &[]);
    functions.comes_through("strided_element", &[]);
    functions.comes_through("indirect_index", &[]);
    functions.comes_through("indirect_element", &["indirect_index"]);
    functions.comes_through("chains_next", &["chains_next", "chains_value"]);
    functions.comes_through("chains_other_next", &["chains_other_next", "chains_other_value"]);
    functions.comes_through("chains_other_value", &["chains_other_next", "chains_other_value"]);
    functions.comes_through("copied_bytes", &[]);
    functions.comes_through("gathered_index", &[]);
    functions.comes_through("gathered_elements", &["gathered_index"]);
    let chained = ["list_next", "list_value", "chains_next", "chains_other_value"];
    let apart = ["array_element", "strided_element", "indirect_element", "gathered_elements"];
    assert!(chained.iter().all(|label| functions.is_chained(label)));
    assert!(!apart.iter().any(|label| functions.is_chained(label)));
}

#[test]
fn a_hash_table_and_a_tree() {
    let mut functions = Functions::of("optimized.s");
    functions.comes_through("bucket_keys", &[]);
    functions.comes_through("bucket_head", &["bucket_keys"]);
    functions.comes_through("bucket_next", &["bucket_keys", "bucket_head", "bucket_key", "bucket_next"]);
    functions.comes_through("bucket_value", &["bucket_keys", "bucket_head", "bucket_key", "bucket_next"]);
    functions.chains("bucket_next", 5, 5.0);
    functions.comes_through("tree_child", &["tree_child", "tree_key"]);
    functions.comes_through("tree_key", &["tree_child", "tree_key"]);
    functions.chains("tree_child", 7, 13.0);
}

#[test]
fn loads_lie_as_far_off_as_the_shortest_way_through_the_code() {
    let mut functions = Functions::of("optimized.s");
    // A value read beside the pointer, on its line, lies as far off as the pointer.
    functions.lies("list_value", &[("list_value", 3), ("list_next", 3)]);
    functions.lies("bucket_head", &[("bucket_keys", 5)]);
    functions.lies("bucket_value", &[("bucket_keys", 10), ("bucket_head", 5), ("bucket_key", 5), ("bucket_next", 5)]);
}

#[test]
fn globals_calls_and_frames() {
    let mut functions = Functions::of("optimized.s");
    functions.comes_through("global_next", &["global_first", "global_next"]);
    functions.chains("global_next", 3, 5.0);
    functions.comes_through("called_next", &["called_next"]);
    functions.comes_through("called_value", &["called_next"]);
    functions.chains("called_next", 7, 5.0);
    functions.comes_through("visits_element", &[]);
    functions.comes_through("visited_field", &["visits_element"]);
    functions.comes_through("frameless_next", &["frameless_next"]);
    functions.chains("frameless_next", 3, 5.0);
    functions.comes_through("pushed_load", &[]);
    functions.comes_through("pushed_use", &["pushed_load"]);
    functions.comes_through("conditional_next", &["conditional_next"]);
    functions.comes_through("conditional_other", &[]);
}

#[test]
fn the_result_of_a_call_of_unknown_code_is_unknown() {
    let mut functions = Functions::of("optimized.s");
    let fetched = functions.origin("fetched_next");
    assert_eq!((fetched.loads, fetched.unknown), (vec![], true));
    let second = functions.origin("fetched_second");
    assert_eq!((second.loads, second.unknown), (vec![functions.assembled.id("fetched_next")], true));
}

#[test]
fn code_that_keeps_its_variables_in_memory() {
    let mut functions = Functions::of("plain.s");
    functions.comes_through("list_pointer", &[]);
    functions.comes_through("list_next", &["list_next"]);
    functions.comes_through("list_value", &["list_next"]);
    functions.chains("list_next", 8, 10.0);
    functions.comes_through("tree_child", &["tree_child", "tree_key"]);
    functions.comes_through("tree_key_again", &["tree_child", "tree_key"]);
    functions.chains("tree_child", 16, 20.0);
    functions.comes_through("global_next", &["global_pointer", "global_next"]);
    functions.chains("global_next", 8, 10.0);
    functions.comes_through("called_value", &["called_next"]);
    functions.comes_through("called_next", &["called_next"]);
}

#[test]
fn branches_are_decided_by_what_they_compare_and_by_their_targets() {
    let mut functions = Functions::of("branches.s");
    functions.decides("probe_empty", &["probe_hash"]);
    functions.decides("probe_equal", &["probe_hash"]);
    // The hash lies on the line of the key.
    functions.decides("probe_less", &["probe_hash", "probe_key", "probe_limit"]);
    functions.decides("sum_again", &[]);
    functions.decides("dispatch_jump", &["dispatch_code", "dispatch_jump"]);
    functions.decides("method_call", &["method_table", "method_entry"]);
}

#[test]
fn a_loop_within_a_loop_is_given_what_earlier_runs_loaded() {
    let mut functions = Functions::of("given.s");
    let turn = functions.assembled.address("checksum_turn");
    let checksum = functions.origin("checksum_load");
    assert_eq!(checksum.given, Some(Given { head: turn, instructions: 9, at: 6, inside: vec![true] }));
    // The load of the loop around decides the page: it does not run in the loop within.
    let search = functions.origin("search_lowest");
    assert!(search.loads.contains(&functions.assembled.id("search_child")));
    let inside: Vec<bool> = search.loads.iter().map(|load| *load == functions.assembled.id("search_lowest")).collect();
    assert_eq!(search.given.map(|given| (given.instructions, given.at, given.inside)), Some((5, 0, inside)));
    assert_eq!([functions.origin("list_next").given, functions.origin("search_child").given], [None, None]);
}

#[test]
fn instructions_are_counted_ahead_to_the_end_of_their_line_and_block() {
    // Twelve loads of eight bytes from 60 bytes into a line on.
    let code: Vec<u8> = [0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0].repeat(12);
    let mut map = CodeMap::default();
    let named: Vec<(u16, InsnId)> = (0..12).map(|n| (n * 8, InsnId(n.into()))).collect();
    let payload = CodeBlock::encode(0, &named, &code);
    map.add(&CodeBlock::decode(0x103c, &payload).expect("a block"));
    let ahead: Vec<u32> = (0..12).map(|n| map.origin(InsnId(n)).expect("known code").counted_ahead).collect();
    // From 0x103c: one straddles 0x1040 and goes on to 0x107c, the next straddles 0x1080.
    assert_eq!(ahead, [8, 7, 6, 5, 4, 3, 2, 1, 4, 3, 2, 1]);
}
