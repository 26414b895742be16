use super::*;

fn expected(content: Content, size: u64) -> Expected {
    Expected { body: Body::Content(content, size), statuses: Statuses::Ok, is_head: false, is_plain: true, id: None }
}

fn response(content: Content, size: usize, is_chunked: bool) -> Vec<u8> {
    let mut body = vec![0; size];
    content.fill(0, &mut body);
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n".to_vec();
    if is_chunked {
        bytes.extend(format!("Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n").bytes());
        bytes.extend(body);
        bytes.extend(b"\r\n0\r\n\r\n");
    } else {
        bytes.extend(format!("Content-Length: {size}\r\n\r\n").bytes());
        bytes.extend(body);
    }
    bytes
}

fn read(expected: &Expected, bytes: &[u8], step: usize) -> Result<Option<Answer>, Fault> {
    let mut reply = Reply::default();
    let mut answer = None;
    for piece in bytes.chunks(step) {
        assert_eq!(answer, None, "whole before the end");
        answer = reply.read(expected, piece)?;
    }
    Ok(answer)
}

#[test]
fn a_response_reads_the_same_however_it_arrives() {
    let content = Content::of(5);
    for is_chunked in [false, true] {
        let bytes = response(content, 100, is_chunked);
        for step in 1..=bytes.len() {
            let answer = read(&expected(content, 100), &bytes, step).expect("right").expect("whole");
            assert_eq!((answer.bytes, answer.keeps_connection), (100, true), "{step}");
        }
    }
}

#[test]
fn a_wrong_byte_a_wrong_length_and_a_wrong_status_are_distinguished() {
    let content = Content::of(5);
    let mut bytes = response(content, 100, false);
    assert_eq!(read(&expected(content, 99), &bytes, 1 << 20), Err(Fault::Body));
    assert_eq!(read(&expected(content, 101), &bytes, 1 << 20), Err(Fault::Body));
    *bytes.last_mut().expect("a body") ^= 1;
    assert_eq!(read(&expected(content, 100), &bytes, 1 << 20), Err(Fault::Body));
    assert_eq!(read(&expected(content, 100), b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 9), Err(Fault::Status));
}

#[test]
fn bytes_behind_an_answer_are_no_answer() {
    let content = Content::of(5);
    let mut bytes = response(content, 100, false);
    bytes.push(b'x');
    assert_eq!(read(&expected(content, 100), &bytes, 1 << 20), Err(Fault::Malformed));
}

#[test]
fn answers_to_head_and_304_have_no_body_despite_their_length() {
    let content = Content::of(5);
    let head = Expected { is_head: true, ..expected(content, 100) };
    let answer = read(&head, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", 99);
    assert!(answer.is_ok_and(|answer| answer.is_some()));
    let unchanged = Expected { statuses: Statuses::NotModified, ..expected(content, 100) };
    let answer = read(&unchanged, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", 99);
    assert!(answer.is_ok_and(|answer| answer.is_some_and(|answer| answer.is_not_modified)));
}

#[test]
fn the_end_of_the_connection_ends_a_body_without_a_length_and_only_that() {
    let any = Expected { body: Body::Any, ..expected(Content::of(1), 0) };
    let mut reply = Reply::default();
    assert_eq!(reply.read(&any, b"HTTP/1.1 200 OK\r\n\r\nsome"), Ok(None));
    assert_eq!(reply.end(&any).map(|answer| (answer.bytes, answer.keeps_connection)), Ok((4, false)));
    let mut reply = Reply::default();
    assert_eq!(reply.read(&any, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"), Ok(None));
    assert_eq!(reply.end(&any), Err(Fault::Closed));
}

#[test]
fn a_body_that_differs_from_the_one_before_is_a_fault() {
    let same = |mark| Expected { body: Body::Same(mark), ..expected(Content::of(1), 0) };
    let mark = Reply::mark_of(b"HTTP/1.1 200 OK\r\n\r\nbody").expect("a whole response");
    let read = |body: &str| {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{body}");
        Reply::default().read(&same(mark), text.as_bytes()).map(|answer| answer.is_some())
    };
    assert_eq!((read("body"), read("Body")), (Ok(true), Err(Fault::Body)));
}
