//! A digest for names.

/// The 64-bit FNV-1a hash of the parts, each followed by a zero byte.
pub(super) fn fnv1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    // A name needs no cryptographic hash: the API server chooses the uid, and a second job with the same name of
    // a workload gets none.
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
