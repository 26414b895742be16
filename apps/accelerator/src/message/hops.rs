//! Earlier hops of a request: Via (RFC 9110 section 7.6.3) and CDN-Loop (RFC 8586).

use http::{HeaderMap, HeaderName, header};

/// Forwarders of a request, listed by servers that must not be made to forward it again.
pub const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");

/// Returns whether a proxy of this name forwarded the request before.
pub fn came_through(fields: &HeaderMap, name: &str) -> bool {
    let is_own = |word: Option<&[u8]>| word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    // `1.1 name (comment)`, and `name; parameter`.
    let via = |element: &[u8]| is_own(element.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1));
    let cdn = |element: &[u8]| is_own(element.split(|byte| *byte == b';').next().map(<[u8]>::trim_ascii));
    fields.get_all(header::VIA).iter().any(|value| elements(value.as_bytes()).into_iter().any(via))
        || fields.get_all(CDN_LOOP).iter().any(|value| elements(value.as_bytes()).into_iter().any(cdn))
}

/// The elements of a list. Commas within comments and quoted strings part nothing, unless one of these has no end: then
/// a client's half comment would hide what was written behind it.
fn elements(value: &[u8]) -> Vec<&[u8]> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut parts: Vec<_> = value
        .split(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted || depth > 0 => escaped = true,
                b'"' if depth == 0 => quoted = !quoted,
                b'(' if !quoted => depth += 1,
                b')' if !quoted => depth = depth.saturating_sub(1),
                b',' => return depth == 0 && !quoted,
                _ => {}
            }
            false
        })
        .collect();
    if quoted || depth > 0 {
        parts = value.split(|byte| *byte == b',').collect();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn came(name: HeaderName, values: &[&'static str]) -> bool {
        let mut fields = HeaderMap::new();
        values.iter().for_each(|value| _ = fields.append(&name, HeaderValue::from_static(value)));
        came_through(&fields, "near.miss")
    }

    #[test]
    fn its_own_name_is_found_where_a_name_stands() {
        for values in [
            &["1.1 near.miss"][..],
            &["1.0 a, HTTP/1.1 \t Near.Miss (x, y)"],
            &["1.0 a", "1.1 near.miss, 1.1 b"],
            &["1.1 a (, 1.1 near.miss"],
            &["1.1 a (\\) , 1.1 near.miss"],
            &["\", 1.1 near.miss"],
            &[",, 1.1 near.miss"],
        ] {
            assert!(came(header::VIA, values), "{values:?}");
        }
        for values in [
            &["1.1 near"][..],
            &["1.1 near.miss.b"],
            &["near.miss a"],
            &["1.1 a (by 1.1 near.miss)"],
            &["1.1 a (b, 1.1 near.miss)"],
            &["1.1 a (b\\), 1.1 near.miss)"],
            &[""],
        ] {
            assert!(!came(header::VIA, values), "{values:?}");
        }
        assert!(came(CDN_LOOP, &["a.example; v=\"1, x\", NEAR.miss ;b=c"]) && came(CDN_LOOP, &["a", "near.miss"]));
        assert!(!came(CDN_LOOP, &["a; b=near.miss; c=\", near.miss\""]) && !came(CDN_LOOP, &["near.miss.example"]));
    }
}
