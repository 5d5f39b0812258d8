//! The fixture of drills: replicas with one certificate behind a balancer, and the API server that calls them.

use std::path::Path;

use crate::balancer::Balancer;
use crate::fixture::{self, Fixture};
use crate::kubectl::Kubectl;
use crate::load::{self, Load};
use crate::lockkeeper::{Lockkeeper, Protocol};
use lockkeeper_testkit::{CertPair, SecretVolume, TestCa};

/// Dropping it stops the servers; the next trial registers another one.
pub struct DrillFixture<'a> {
    pub stage: &'a mut Fixture,
    pub kubectl: Kubectl,
    pub protocol: Protocol,
    pub authority: TestCa,
    pub volume: SecretVolume,
    pub balancer: Balancer,
    pub replicas: Vec<Lockkeeper>,
    config: &'static str,
}

impl<'a> DrillFixture<'a> {
    /// Starts that many replicas with `config`, registers them with the API server, and creates the objects that the load
    /// needs.
    #[track_caller]
    pub fn open(
        stage: &'a mut Fixture,
        protocol: Protocol,
        config: &'static str,
        replicas: usize,
    ) -> Self {
        let mut site = Self::without_replicas(stage, protocol, config);
        for _ in 0..replicas {
            site.add_replica();
        }
        site.balancer.wait_ready(&site.ports());
        fixture::register_webhook(&site.kubectl, &site.balancer.url(), &site.volume.ca());
        site.create_objects();
        site
    }

    /// A fixture without a replica.
    #[track_caller]
    pub fn without_replicas(
        stage: &'a mut Fixture,
        protocol: Protocol,
        config: &'static str,
    ) -> Self {
        let kubectl = stage.without_server();
        let authority = TestCa::new("drill CA");
        let folder = stage.new_folder().join("tls");
        let volume = SecretVolume::mount(folder, &authority, &authority.server());
        let balancer = Balancer::start(&volume.ca()).unwrap();
        Self {
            stage,
            kubectl,
            protocol,
            authority,
            volume,
            balancer,
            replicas: Vec::new(),
            config,
        }
    }

    /// Removes the objects of earlier trials, and creates the objects that the load needs.
    #[track_caller]
    pub fn create_objects(&self) {
        fixture::sweep(&self.kubectl);
        self.kubectl
            .apply(load::REQUIRED_OBJECTS, &[])
            .expect_accepted_without_warning();
    }

    /// Starts one more replica.
    #[track_caller]
    pub fn add_replica(&mut self) {
        let credentials = self.stage.cluster().server().to_owned();
        self.add_replica_as(&credentials);
    }

    /// Starts one more replica with these credentials.
    #[track_caller]
    pub fn add_replica_as(&mut self, credentials: &Path) {
        let folder = self.stage.new_folder();
        let replica = Lockkeeper::replica(
            credentials,
            &folder,
            self.protocol,
            self.config,
            &self.volume,
        )
        .unwrap_or_else(|e| panic!("{e}"));
        self.balancer.add(replica.port());
        self.replicas.push(replica);
    }

    /// The ports of all replicas, the oldest first.
    pub fn ports(&self) -> Vec<u16> {
        self.replicas.iter().map(Lockkeeper::port).collect()
    }

    /// Starts the load.
    #[track_caller]
    pub fn load(&mut self) -> Load {
        Load::start(self.stage.cluster())
    }

    /// Mounts a new certificate, and returns it.
    pub fn rotate(&mut self) -> CertPair {
        let pair = self.authority.server();
        self.volume.write(&pair.certificate, &pair.key);
        pair
    }

    /// Makes the API server open new connections.
    #[track_caller]
    pub fn renew_connections(&self, load: &Load) {
        load.paused_while(|| self.balancer.close_connections());
    }

    /// The name of a drill in the printed counts.
    pub fn title(&self, name: &str) -> String {
        format!("{name} ({})", self.protocol)
    }
}
