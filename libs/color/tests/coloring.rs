//! Objects keep inside their pieces, are found again from anywhere, spread evenly, and lie
//! where the C header puts them.
#![allow(clippy::unwrap_used)]

use nearmiss_color::Coloring;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn shapes() -> impl Strategy<Value = (usize, usize, usize, u32)> {
    (10u32..22, 4u32..8, 0u32..8, 0u32..8).prop_filter_map("fits", |(piece, line, colors, above)| {
        (line + colors < piece).then_some((1 << piece, 1 << line, 1 << colors, piece + above))
    })
}

proptest! {
    #[test]
    fn found_again_from_any_pointer_into_the_piece(
        (piece, line, colors, bit) in shapes(), number in 0usize..1 << 26, inside in 0usize..1 << 22,
    ) {
        let coloring = Coloring::from_bit(piece, line, colors, bit).unwrap();
        let base = number * piece;
        let object = coloring.object(base + inside % piece);
        prop_assert_eq!(object, coloring.object(base));
        prop_assert_eq!(object, coloring.object(object));
        prop_assert_eq!(coloring.piece(object), base);
        prop_assert!(object + coloring.room_bytes() <= base + piece);
        prop_assert_eq!((object - base) / line, (base >> bit) % colors);
    }
}

#[test]
fn neighbours_take_the_colors_in_turn() {
    let coloring = Coloring::new(8192, 64, 4).unwrap();
    let offsets: Vec<usize> = (0..6).map(|i| coloring.object(i * 8192) - i * 8192).collect();
    assert_eq!(offsets, [0, 64, 128, 192, 0, 64]);
}

#[test]
fn impossible_shapes_are_refused() {
    assert_eq!(Coloring::new(8000, 64, 32), None);
    assert_eq!(Coloring::new(8192, 60, 32), None);
    assert_eq!(Coloring::new(8192, 64, 33), None);
    assert_eq!(Coloring::new(8192, 64, 128), None, "nothing would be left of the piece");
    assert_eq!(Coloring::new(0, 64, 32), None);
    assert_eq!(Coloring::from_bit(8192, 64, 32, 12), None, "the bit lies inside the piece");
}

#[test]
fn the_header_computes_the_same_in_c_and_in_cpp() {
    let mut cases = vec![(8192, 64, 32, 16, 0x7fff_1234_5678)];
    for piece in [4096usize, 8192, 1 << 20] {
        for colors in [1usize, 2, 16, 32] {
            for i in [0usize, 1, 3, 77, 1 << 20] {
                cases.push((piece, 64, colors, piece.ilog2(), i * piece + 99));
            }
        }
    }
    let mut input = String::new();
    let mut expected = "requested 16\n".to_owned();
    for (piece, line, colors, bit, address) in cases {
        let c = Coloring::from_bit(piece, line, colors, bit).unwrap();
        writeln!(input, "{piece} {line} {colors} {bit} {address}").unwrap();
        writeln!(expected, "{} {} {}", c.object(address), c.piece(address), c.room_bytes()).unwrap();
    }
    // A shape that makes no sense leaves the object where it is.
    input.push_str("8192 64 33 13 24600\n");
    expected.push_str("24576 24576 8192\n");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("header-{language}"));
        let built = Command::new(compiler)
            .args(["-x", language, "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
            .arg(here.join("../../native/include"))
            .arg("-o")
            .arg(&program)
            .arg(here.join("tests/header.c"))
            .status();
        let Ok(status) = built else {
            println!("skipped: no {compiler}");
            continue;
        };
        assert!(status.success(), "{compiler}");
        let mut child = Command::new(&program)
            .env("NEARMISS_COLOR", "31")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{compiler}");
    }
}
