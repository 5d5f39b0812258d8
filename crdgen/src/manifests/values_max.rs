/// The most values in a text: fields, items and documents. About 64 MiB of an ordinary manifest; the limit bounds the
/// memory of texts that consist of very short values.
pub const VALUES_MAX: usize = 8_000_000;
