//! What a drill stands on: replicas with one certificate behind a balancer, and the API server that
//! asks them.

use std::path::PathBuf;

use crate::balancer::Balancer;
use crate::certificates::{Authority, Pair, Volume};
use crate::kubectl::Kubectl;
use crate::load::{self, Load};
use crate::lockkeeper::{Lockkeeper, Protocol};
use crate::stage::{self, Stage};

/// Dropping it ends the servers; whoever comes next on the stage registers another.
pub struct Site<'a> {
    pub stage: &'a mut Stage,
    pub kubectl: Kubectl,
    pub protocol: Protocol,
    pub authority: Authority,
    pub volume: Volume,
    pub balancer: Balancer,
    pub replicas: Vec<Lockkeeper>,
    config: &'static str,
}

impl<'a> Site<'a> {
    /// Starts that many replicas with `config`, has the API server ask them, and makes what the load
    /// needs.
    #[track_caller]
    pub fn open(
        stage: &'a mut Stage,
        protocol: Protocol,
        config: &'static str,
        replicas: usize,
    ) -> Self {
        let kubectl = stage.vacant();
        let authority = Authority::new();
        let folder = stage.folder();
        let volume = Volume::mount(folder.join("tls"), &authority, &authority.pair());
        let balancer = Balancer::start(volume.ca()).unwrap();
        let mut site = Self {
            stage,
            kubectl,
            protocol,
            authority,
            volume,
            balancer,
            replicas: Vec::new(),
            config,
        };
        for _ in 0..replicas {
            site.add();
        }
        site.balancer.wait_ready(&site.ports());
        stage::register(&site.kubectl, &site.balancer.url(), site.volume.ca());
        stage::sweep(&site.kubectl);
        site.kubectl.apply(load::NEEDED, &[]).accepted_silently();
        site
    }

    /// Starts one more replica.
    #[track_caller]
    pub fn add(&mut self) {
        let folder = self.stage.folder();
        let credentials: PathBuf = self.stage.cluster().server().to_owned();
        let replica = Lockkeeper::replica(
            &credentials,
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
    pub fn rotate(&mut self) -> Pair {
        let pair = self.authority.pair();
        self.volume.write(&pair.certificate, &pair.key);
        pair
    }

    /// Has the API server open new connections.
    #[track_caller]
    pub fn renew_connections(&self, load: &Load) {
        load.hold(|| self.balancer.renew());
    }

    /// How a drill is named where its counts are printed.
    pub fn title(&self, name: &str) -> String {
        format!("{name} ({})", self.protocol)
    }
}
