//! How a traced command came to its end, in the words of the reports' heads.

use crate::name::plain;
use nearmiss_record::run::Manifest;

/// A clause each: the command's own end, and what a reader must know of it.
pub(crate) fn clauses(manifest: &Manifest) -> Vec<String> {
    let mut clauses = Vec::new();
    match (manifest.exit_status, manifest.signal) {
        (Some(status), _) => clauses.push(format!("exit status {status}")),
        (None, Some(signal)) => clauses.push(format!("killed by signal {signal}")),
        (None, None) => {}
    }
    if manifest.out_of_memory {
        clauses.push("the guest ran out of memory and killed a process: give it more with --memory".to_owned());
    }
    clauses.extend(manifest.covered.and_then(|covered| covered.sentence()).map(|sentence| {
        let mut clause = sentence.trim_end_matches('.').to_owned();
        clause[..1].make_ascii_lowercase();
        clause
    }));
    clauses.extend(manifest.cut.iter().map(|cut| format!("cut: {}", plain(cut))));
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_names_what_was_behind_it() {
        let manifest = Manifest { exit_status: Some(0), ..Manifest::default() };
        assert_eq!(clauses(&manifest), ["exit status 0"]);
        let closed = Manifest { cut: Some("the command closed\nthe window itself".into()), ..manifest };
        assert_eq!(clauses(&closed), ["exit status 0", "cut: the command closed\\u{a}the window itself"]);
        let killed = Manifest { signal: Some(9), out_of_memory: true, ..Manifest::default() };
        let memory = "the guest ran out of memory and killed a process: give it more with --memory";
        assert_eq!(clauses(&killed), ["killed by signal 9", memory]);
        assert!(clauses(&Manifest::default()).is_empty());
    }
}
