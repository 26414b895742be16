//! Pages that a stream of files pushed out of the page cache, and whether they were read again.

use super::finding::Stream;
use nearmiss_analysis::{Case, CaseError, Suspicion, Suspicions};
use nearmiss_record::observed::{CachedFile, Observed};

/// Less is no stream, and pushes nothing out that would be missed.
const LEAST_STREAM_BYTES: u64 = 16 << 20;
/// Less of others' files is what the kernel drops anyway.
const LEAST_LOST_BYTES: u64 = 1 << 20;

/// The target's files that filled the page cache, where others' files lost pages meanwhile.
pub fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    let Some(observation) = &case.observation else { return Ok(Vec::new()) };
    Ok(stream_of(observation.observed()).map(|stream| Box::new(stream) as Box<dyn Suspicion>).into_iter().collect())
}

/// Files that the target read or wrote, and files that lost pages to them.
pub(super) fn stream_of(observed: &Observed) -> Option<Stream> {
    let (own, others): (Vec<CachedFile>, Vec<CachedFile>) =
        observed.cached.iter().cloned().partition(|file| file.of_target);
    let moved: u64 = observed.io.iter().map(|io| io.bytes).sum();
    let held: u64 = own.iter().map(|file| file.after_bytes).sum();
    let lost: Vec<CachedFile> = others.iter().filter(|file| file.lost() > 0).cloned().collect();
    let enough = held.max(moved) >= LEAST_STREAM_BYTES;
    let others_bytes = others.iter().filter_map(|file| file.before_bytes).sum();
    let stream = Stream { own, lost, moved_bytes: moved, others_bytes };
    (enough && stream.lost_bytes() >= LEAST_LOST_BYTES).then_some(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::BlockIo;

    const MIB: u64 = 1 << 20;

    fn file(path: &str, of_target: bool, before: u64, after: u64, read: Option<u64>) -> CachedFile {
        CachedFile {
            path: path.to_owned(),
            name: "base".to_owned(),
            of_target,
            before_bytes: Some(before * MIB),
            after_bytes: after * MIB,
            read_bytes: read.map(|read| read * MIB),
            ..CachedFile::default()
        }
    }

    fn observed(cached: Vec<CachedFile>, moved: u64) -> Observed {
        Observed { cached, io: vec![BlockIo { bytes: moved * MIB, ..BlockIo::default() }], ..Observed::default() }
    }

    #[test]
    fn a_stream_is_found_where_others_lost_pages() {
        let cached = vec![
            file("/copy", true, 0, 300, None),
            file("/base", false, 293, 3, Some(40)),
            file("/other", false, 7, 7, Some(0)),
        ];
        let stream = stream_of(&observed(cached, 1500)).unwrap_or_default();
        assert_eq!((stream.lost_bytes(), stream.others_bytes, stream.held_bytes()), (290 * MIB, 300 * MIB, 300 * MIB));
        // A process cannot have read again more of its files than they lost.
        assert_eq!(stream.read_again_bytes(), Some(40 * MIB));
    }

    #[test]
    fn nothing_is_found_where_nobody_lost_pages_or_little_was_moved() {
        let kept = vec![file("/copy", true, 0, 300, None), file("/base", false, 293, 293, None)];
        assert_eq!(stream_of(&observed(kept, 1500)), None);
        let small = vec![file("/copy", true, 0, 3, None), file("/base", false, 293, 3, None)];
        assert_eq!(stream_of(&observed(small, 3)), None);
    }
}
