//! A test CA, and certificates mounted as a kubelet mounts a Secret volume.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::CertificateDer;

/// A CA that signs serving certificates for localhost.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "drill CA");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Issues a certificate with a new key.
    pub fn pair(&self) -> Pair {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair {
            der: certificate.der().clone(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A certificate and its private key.
pub struct Pair {
    /// The certificate in DER, as a client receives it.
    pub der: CertificateDer<'static>,
    pub certificate: String,
    pub key: String,
}

/// A mounted Secret: `tls.crt` → `..data/tls.crt`, and `..data` → a directory that is replaced as a
/// whole, by a rename. (Kubernetes, `pkg/volume/util`, `AtomicWriter`.)
pub struct Volume {
    folder: PathBuf,
    ca: PathBuf,
    generation: usize,
}

impl Volume {
    /// Mounts `pair` in a new folder; the CA file is next to it.
    pub fn mount(folder: PathBuf, authority: &Authority, pair: &Pair) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let ca = folder.with_extension("ca.crt");
        fs::write(&ca, &authority.pem).unwrap();
        let mut volume = Self {
            folder,
            ca,
            generation: 0,
        };
        volume.write(&pair.certificate, &pair.key);
        for name in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), volume.folder.join(name)).unwrap();
        }
        volume
    }

    /// Replaces both files atomically.
    pub fn write(&mut self, certificate: &str, key: &str) {
        self.generation += 1;
        let name = format!("..generation-{}", self.generation);
        let directory = self.folder.join(&name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("tls.crt"), certificate).unwrap();
        fs::write(directory.join("tls.key"), key).unwrap();
        let data = self.folder.join("..data");
        let old = fs::read_link(&data).ok();
        let temporary = self.folder.join("..data_tmp");
        symlink(name, &temporary).unwrap();
        fs::rename(temporary, data).unwrap();
        if let Some(old) = old {
            fs::remove_dir_all(self.folder.join(old)).unwrap();
        }
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.join("tls.crt")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.join("tls.key")
    }

    pub fn ca(&self) -> &Path {
        &self.ca
    }
}
