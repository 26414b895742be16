//! Names as the source has them.

/// Demangles Rust and C++, without hashes and parameters; takes versions (`@@GLIBC_2.34`) off.
pub(super) fn demangle(symbol: &str) -> String {
    let plain = match symbol.find('@') {
        Some(0) | None => symbol,
        Some(at) => &symbol[..at],
    };
    if let Ok(rust) = rustc_demangle::try_demangle(plain) {
        return format!("{rust:#}");
    }
    if plain.starts_with("_Z") {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        let name = cpp_demangle::Symbol::new(plain).ok().and_then(|s| s.demangle_with_options(&options).ok());
        if let Some(name) = name {
            return name;
        }
    }
    plain.to_owned()
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn each_language_is_known() {
        assert_eq!(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"), "std::vector<int, std::allocator<int> >::push_back");
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("_Z!"), "_Z!");
    }
}
