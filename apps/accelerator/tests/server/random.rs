//! A bounded run of what the fuzz target `http` asserts, and a slow obvious twin of the decoder of chunked bodies.
#![allow(clippy::unwrap_used, reason = "a test that fails by unwrap has failed well")]

use nearmiss_accelerator::message::probe;
use proptest::prelude::*;

/// Pieces that messages are made of, right and wrong ones.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let known: &[&str] = &[
        "GET / HTTP/1.1\r\n",
        "POST /x HTTP/1.1\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 204 x\r\n",
        "Host: a\r\n",
        "Content-Length: 3\r\n",
        "Content-Length: 10\r\n",
        "Transfer-Encoding: chunked\r\n",
        "\r\n",
        "\n",
        "\r",
        " ",
        "3\r\nabc\r\n",
        "0\r\n\r\n",
        "a;x=\"y\"\r\n0123456789\r\n",
        "0\r\nT: u\r\n\r\n",
        "ffffffffffffffff\r\n",
        ":",
        "\0",
    ];
    let known: Vec<Vec<u8>> = known.iter().map(|text| text.as_bytes().to_vec()).collect();
    prop_oneof![8 => prop::sample::select(known), 1 => prop::collection::vec(any::<u8>(), 0..6)]
}

/// The content of a chunked body that is all there, read the obvious way.
fn obvious(mut body: &str) -> Option<(String, usize)> {
    let (all, mut content) = (body.len(), String::new());
    loop {
        let (line, rest) = body.split_once("\r\n")?;
        let size = usize::from_str_radix(line.split(';').next()?, 16).ok()?;
        if size == 0 {
            let end = if rest.starts_with("\r\n") { 2 } else { rest.find("\r\n\r\n")? + 4 };
            return Some((content, all - rest.len() + end));
        }
        content += rest.get(..size)?;
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn how_bytes_are_cut_changes_nothing(parts in prop::collection::vec(part(), 0..14), cut in 1usize..40) {
        let input = parts.concat();
        prop_assert_eq!(probe::request(&input, cut), probe::request(&input, usize::MAX));
        prop_assert_eq!(probe::response(&input, cut), probe::response(&input, usize::MAX));
    }

    #[test]
    fn chunks_are_read_as_the_obvious_reader_does(
        chunks in prop::collection::vec("[a-z]{1,40}", 0..8), trailer in prop::option::of("[A-Z]{1,5}: [a-z]{0,5}"), cut in 1usize..30,
    ) {
        let mut body: String = chunks.iter().map(|chunk| format!("{:X};n=v\r\n{chunk}\r\n", chunk.len())).collect();
        body += "0\r\n";
        body += &trailer.map(|line| format!("{line}\r\n")).unwrap_or_default();
        body += "\r\n";
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let input = format!("{head}{body}GET / HTTP/1.1\r\n");
        let message = probe::request(input.as_bytes(), cut).unwrap().unwrap();
        let (content, size) = obvious(&body).unwrap();
        prop_assert_eq!(message.size, Some(head.len() + size));
        prop_assert_eq!(String::from_utf8(message.content).unwrap(), content);
    }
}
