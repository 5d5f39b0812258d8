//! Pod affinity, anti-affinity and topology spread in a plain representation, checked as kube-scheduler's plugins do: by a look at
//! all pods.

use super::clusters::{ModelCluster, ModelJob};
use crate::model::choices::Choices;
use lockkeeper_preemption::SymbolId;
use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::placement::{
    InterPodConstraints, LabelCondition, PodAffinityTerm, Requirement, Selector, TopologySpread,
};

/// The label of a node whose values are the domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyKey {
    Host,
    /// Some nodes have no zone.
    Zone,
}

/// Selects the pods with this label.
#[derive(Clone, Copy, Debug)]
pub struct ModelTerm {
    pub key: TopologyKey,
    pub label: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct ModelSpread {
    pub term: ModelTerm,
    pub max_skew: i64,
    pub min_domains: usize,
}

#[derive(Clone, Debug, Default)]
pub struct ModelConstraints {
    pub affinity: Vec<ModelTerm>,
    pub anti_affinity: Vec<ModelTerm>,
    pub spread: Vec<ModelSpread>,
}

impl ModelTerm {
    fn random(dice: &mut Choices<'_>) -> Self {
        Self {
            key: dice.pick(&[TopologyKey::Host, TopologyKey::Zone]),
            label: dice.below(2),
        }
    }

    fn selects(self, job: &ModelJob) -> bool {
        job.label == Some(self.label)
    }
}

impl ModelConstraints {
    pub fn random(dice: &mut Choices<'_>) -> Self {
        let terms = |dice: &mut Choices<'_>| -> Vec<ModelTerm> {
            let count = if dice.one_in(3) { 1 + dice.below(2) } else { 0 };
            (0..count).map(|_| ModelTerm::random(dice)).collect()
        };
        let affinity = terms(dice);
        let anti_affinity = terms(dice);
        let spread = terms(dice).into_iter().map(|term| ModelSpread {
            term,
            max_skew: 1 + i64::try_from(dice.below(2)).unwrap(),
            min_domains: 1 + dice.below(3),
        });
        Self {
            affinity,
            anti_affinity,
            spread: spread.collect(),
        }
    }

    /// Whether the pods fit in any order if they fit in one.
    pub fn is_order_irrelevant(&self) -> bool {
        self.affinity.is_empty() && self.spread.is_empty()
    }

    pub fn build(&self, cluster: &mut GangCluster) -> InterPodConstraints {
        let namespace = cluster.symbol("");
        let mut affinity_term = |term: &ModelTerm| PodAffinityTerm {
            topology_key: topology_key(cluster, term.key),
            namespaces: Box::new([namespace]),
            namespace_selector: None,
            selector: selector(cluster, term.label),
        };
        let affinity = self.affinity.iter().map(&mut affinity_term).collect();
        let anti_affinity = self.anti_affinity.iter().map(&mut affinity_term).collect();
        let spread = self.spread.iter().map(|it| TopologySpread {
            topology_key: topology_key(cluster, it.term.key),
            selector: selector(cluster, it.term.label),
            max_skew: it.max_skew,
            min_domains: it.min_domains,
            honors_node_affinity: true,
            // The taint of the model has one of its tolerations, or none.
            honors_node_taints: it.max_skew == 1,
        });
        InterPodConstraints {
            affinity,
            anti_affinity,
            spread: spread.collect(),
        }
    }
}

pub fn topology_key(cluster: &mut GangCluster, key: TopologyKey) -> SymbolId {
    cluster.symbol(match key {
        TopologyKey::Host => "host",
        TopologyKey::Zone => "zone",
    })
}

fn selector(cluster: &mut GangCluster, label: usize) -> Selector {
    let key = cluster.symbol("app");
    let value = cluster.symbol(&label.to_string());
    let condition = LabelCondition::In(Box::new([value]));
    Selector(Box::new([Requirement { key, condition }]))
}

/// Whether the pods on nodes permit a pod of a job, which is not among them, on a node.
pub fn is_permitted(town: &ModelCluster, job: usize, host: usize) -> bool {
    let wants = &town.jobs[job];
    spread_permits(town, job, host)
        && affinity_permits(town, wants, host)
        && anti_affinity_permits(town, wants, host)
}

/// The domain of a node.
fn domain(town: &ModelCluster, host: usize, key: TopologyKey) -> Option<usize> {
    match key {
        TopologyKey::Host => Some(host),
        TopologyKey::Zone => town.hosts[host].zone,
    }
}

/// The pods on nodes: their jobs and nodes.
fn running(town: &ModelCluster) -> impl Iterator<Item = (&ModelJob, usize)> {
    let all = town.jobs.iter();
    let all = all.flat_map(|job| job.pods.iter().map(move |pod| (job, pod.host)));
    all.filter_map(|(job, host)| Some((job, host.filter(|it| *it < town.hosts.len())?)))
}

fn anti_affinity_permits(town: &ModelCluster, wants: &ModelJob, host: usize) -> bool {
    running(town).all(|(other, at)| {
        let meets = |term: &ModelTerm| {
            let here = domain(town, host, term.key);
            here.is_some() && here == domain(town, at, term.key)
        };
        let mut own = wants.constraints.anti_affinity.iter();
        let mut others = other.constraints.anti_affinity.iter();
        !own.any(|it| it.selects(other) && meets(it))
            && !others.any(|it| it.selects(wants) && meets(it))
    })
}

fn affinity_permits(town: &ModelCluster, wants: &ModelJob, host: usize) -> bool {
    let terms = &wants.constraints.affinity;
    if terms.iter().any(|it| domain(town, host, it.key).is_none()) {
        return false;
    }
    // A pod counts only if it matches all terms.
    let matching: Vec<usize> = running(town)
        .filter(|(other, _)| terms.iter().all(|it| it.selects(other)))
        .map(|(_, at)| at)
        .collect();
    let is_met = |term: &ModelTerm| {
        let here = domain(town, host, term.key);
        matching
            .iter()
            .any(|at| domain(town, *at, term.key) == here)
    };
    let is_known = |term: &ModelTerm| {
        let mut matching = matching.iter();
        matching.any(|at| domain(town, *at, term.key).is_some())
    };
    terms.iter().all(is_met)
        || !terms.iter().any(is_known) && terms.iter().all(|it| it.selects(wants))
}

fn spread_permits(town: &ModelCluster, job: usize, host: usize) -> bool {
    let wants = &town.jobs[job];
    let all = &wants.constraints.spread;
    all.iter().all(|it| {
        let Some(here) = domain(town, host, it.term.key) else {
            return false;
        };
        let honors_taints = it.max_skew == 1;
        let is_eligible = |host: usize| {
            let mut all = all.iter();
            all.all(|it| domain(town, host, it.term.key).is_some())
                && (!honors_taints || town.admits(host, wants))
        };
        let mut domains: Vec<usize> = (0..town.hosts.len())
            .filter(|host| is_eligible(*host))
            .filter_map(|host| domain(town, host, it.term.key))
            .collect();
        domains.sort_unstable();
        domains.dedup();
        let count = |of: usize| {
            let pods = running(town).filter(|(other, at)| {
                !other.is_terminating
                    && it.term.selects(other)
                    && is_eligible(*at)
                    && domain(town, *at, it.term.key) == Some(of)
            });
            i64::try_from(pods.count()).unwrap()
        };
        let fewest = domains.iter().map(|of| count(*of)).min();
        let fewest = fewest.unwrap_or(i64::from(i32::MAX));
        let fewest = if domains.len() < it.min_domains {
            0
        } else {
            fewest
        };
        let own = i64::from(it.term.selects(wants));
        let known = if domains.contains(&here) {
            count(here)
        } else {
            0
        };
        known + own - fewest <= it.max_skew
    })
}

/// The nodes of each domain in which the pods of a job are tried if they do not fit everywhere.
pub fn domains_to_try(town: &ModelCluster, job: usize, hosts: &[usize]) -> Vec<Vec<usize>> {
    let Some(term) = town.jobs[job].constraints.affinity.first() else {
        return Vec::new();
    };
    let mut domains: Vec<(usize, Vec<usize>)> = Vec::new();
    for host in hosts {
        let Some(of) = domain(town, *host, term.key) else {
            continue;
        };
        match domains.iter_mut().find(|it| it.0 == of) {
            Some((_, hosts)) => hosts.push(*host),
            None => domains.push((of, vec![*host])),
        }
    }
    domains.into_iter().map(|it| it.1).collect()
}
