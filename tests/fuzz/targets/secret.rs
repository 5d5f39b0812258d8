//! The data of the certificates' Secret: any part may be damaged or replaced. It is rejected with an error that quotes nothing, or
//! read as it is.
//!
//! The first byte of an input names a part, and the rest replaces it: a PEM text; or, when it begins with C or K, the DER of a
//! certificate or a key, which is encoded here. With another first byte, the rest has all four parts, separated by zero bytes.

use k8s_openapi::ByteString;
use crate::pem_input::in_pem;
use lockkeeper_certs::cert_rotation::parse_secret_data;
use lockkeeper_certs::self_signed;
use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;
use std::time::SystemTime;
use tempfile::TempDir;

const PARTS: [&str; 4] = ["ca.crt", "ca.key", "tls.crt", "tls.key"];

/// The longest error text, in bytes: a sentence.
const ERROR_BYTES_MAX: usize = 120;

type Data = BTreeMap<String, ByteString>;

/// Valid data: a directory with certificates has the same parts.
static VALID: LazyLock<Data> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let directory = folder.path().join("tls");
    let names = ["localhost".to_owned()];
    self_signed::ensure(&directory, &names, SystemTime::now()).expect("certificates");
    let part = |name: &&str| {
        let bytes = fs::read(directory.join(name)).expect("a file");
        ((*name).to_owned(), ByteString(bytes))
    };
    let data: Data = PARTS.iter().map(part).collect();
    let names = parse_secret_data(&data).expect("valid data");
    assert_eq!(names, Some(vec!["localhost".to_owned()]));
    data
});

pub fn run(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else {
        return;
    };
    let mut data = VALID.clone();
    match PARTS.get(usize::from(first.wrapping_sub(b'0'))) {
        Some(part) => {
            data.insert((*part).to_owned(), ByteString(in_pem(rest)));
        }
        None => {
            let parts = rest.splitn(PARTS.len(), |it| *it == 0);
            data = PARTS.iter().zip(parts).map(|(name, it)| ((*name).to_owned(), ByteString(in_pem(it)))).collect();
        }
    }
    match parse_secret_data(&data) {
        Ok(Some(_)) => assert!(PARTS.iter().all(|it| data.contains_key(*it))),
        Ok(None) => assert!(data.values().all(|it| it.0.is_empty())),
        Err(error) => assert!(error.to_string().len() < ERROR_BYTES_MAX, "{error}"),
    }
}
