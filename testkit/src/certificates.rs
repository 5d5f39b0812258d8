//! A test CA, and certificates mounted as a kubelet mounts a Secret volume.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::CertificateDer;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const CA: &str = "ca.crt";

/// A new private key for ES256 signatures, as PKCS #8 (DER).
#[must_use]
pub fn new_signing_key() -> Vec<u8> {
    KeyPair::generate().unwrap().serialize_der()
}

/// A CA that signs the certificates of tests.
pub struct TestCa {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl TestCa {
    /// A CA with a new key.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// The certificate of the CA.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Issues a serving certificate for localhost, which is valid for a day.
    #[must_use]
    pub fn server(&self) -> CertPair {
        self.sign("server", &["localhost", "127.0.0.1"], false, -10..1)
    }

    /// Issues a client certificate, which is valid for a day.
    #[must_use]
    pub fn client(&self, common_name: &str, names: &[&str]) -> CertPair {
        self.sign(common_name, names, true, -10..1)
    }

    /// Issues a certificate with a new key, valid from one day to another; today is 0.
    #[must_use]
    pub fn sign(
        &self,
        common_name: &str,
        names: &[&str],
        is_client: bool,
        days: Range<i32>,
    ) -> CertPair {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![if is_client {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        params.not_before = day(days.start).into();
        params.not_after = day(days.end).into();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        CertPair {
            der: certificate.der().clone(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

fn day(number: i32) -> SystemTime {
    let distance = number.unsigned_abs() * Duration::from_hours(24);
    if number < 0 {
        SystemTime::now() - distance
    } else {
        SystemTime::now() + distance
    }
}

/// A certificate and its private key.
#[derive(Clone)]
pub struct CertPair {
    /// The certificate in DER, as a client receives it.
    pub der: CertificateDer<'static>,
    /// The certificate in PEM.
    pub certificate: String,
    /// The key in PEM.
    pub key: String,
}

impl CertPair {
    /// Writes both files into an existing directory.
    pub fn write(&self, directory: &Path) {
        fs::write(directory.join(CERTIFICATE), &self.certificate).unwrap();
        fs::write(directory.join(KEY), &self.key).unwrap();
    }

    /// Replaces both files, each one atomically.
    pub fn rename_over(&self, directory: &Path) {
        replace_file(&directory.join(KEY), &self.key);
        replace_file(&directory.join(CERTIFICATE), &self.certificate);
    }
}

/// Replaces a file atomically.
pub fn replace_file(path: &Path, content: &str) {
    let temporary = path.with_extension("new");
    fs::write(&temporary, content).unwrap();
    fs::rename(temporary, path).unwrap();
}

/// A mounted Secret: `tls.crt` → `..data/tls.crt`, and `..data` → a directory that is replaced as a whole, by a
/// rename. (Kubernetes, `pkg/volume/util`, `AtomicWriter`.)
pub struct SecretVolume {
    folder: PathBuf,
    generation: usize,
}

impl SecretVolume {
    /// Mounts a pair and the certificate of its CA in a folder, which is created if it is missing.
    #[must_use]
    pub fn mount(folder: PathBuf, ca: &TestCa, pair: &CertPair) -> Self {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(CA), ca.pem()).unwrap();
        let mut volume = Self {
            folder,
            generation: 0,
        };
        volume.write(&pair.certificate, &pair.key);
        for name in [CERTIFICATE, KEY] {
            symlink(Path::new("..data").join(name), volume.folder.join(name)).unwrap();
        }
        volume
    }

    /// Replaces both files in one atomic step.
    pub fn write(&mut self, certificate: &str, key: &str) {
        self.generation += 1;
        let name = format!("..generation-{}", self.generation);
        let directory = self.folder.join(&name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(CERTIFICATE), certificate).unwrap();
        fs::write(directory.join(KEY), key).unwrap();
        let data = self.folder.join("..data");
        let old = fs::read_link(&data).ok();
        let temporary = self.folder.join("..data_tmp");
        symlink(name, &temporary).unwrap();
        fs::rename(temporary, data).unwrap();
        if let Some(old) = old {
            fs::remove_dir_all(self.folder.join(old)).unwrap();
        }
    }

    /// The path of the certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.join(CERTIFICATE)
    }

    /// The path of the certificate of the CA.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.folder.join(CA)
    }

    /// The path of the private key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.folder.join(KEY)
    }
}
