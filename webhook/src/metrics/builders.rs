//! Creates and registers the metrics with labels.

use super::fixed_family::{FixedFamily, PolledMetric};
use super::kind_label::KindLabel;
use crate::metric_labels::{
    AdmissionOutcome, ConversionOutcome, HitAction, LabelValues, OperationLabel, ReviewPath,
};
use crate::stores::{self, Store, StoreReadiness};
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_policies::index::Index;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::sync::{Arc, PoisonError, RwLock};

/// The label value of kinds without their own.
const OTHER_LABEL: &str = "other";

/// Registers a family and returns the handle to it.
pub(super) fn register_family<M>(
    registry: &mut Registry,
    family: FixedFamily<M>,
) -> Arc<FixedFamily<M>>
where
    M: EncodeMetric + Send + Sync + 'static,
{
    let family = Arc::new(family);
    registry.register_collector(Box::new(Arc::clone(&family)));
    family
}

pub(super) fn counter_family(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    labels: &[LabelValues],
) -> Arc<FixedFamily<Counter>> {
    let family = FixedFamily::new(name, help, MetricType::Counter, labels, |_| {
        Counter::default()
    });
    register_family(registry, family)
}

pub(super) fn request_counters(
    registry: &mut Registry,
    kinds: &[KindLabel],
) -> Arc<FixedFamily<Counter>> {
    let names = kinds.iter().map(|kind| kind.label.clone());
    let kind = ("kind", names.chain([OTHER_LABEL.to_owned()]).collect());
    counter_family(
        registry,
        "requests",
        "Admission reviews, by result.",
        &[
            kind,
            OperationLabel::label(),
            ReviewPath::admission_label(),
            AdmissionOutcome::label(),
        ],
    )
}

pub(super) fn conversion_counters(registry: &mut Registry) -> Arc<FixedFamily<Counter>> {
    counter_family(
        registry,
        "conversions",
        "Conversion reviews, by result.",
        &[ConversionOutcome::label()],
    )
}

pub(super) fn rule_hit_counters(
    registry: &mut Registry,
    rules: &[&str],
) -> Arc<FixedFamily<Counter>> {
    let ids = rules.iter().map(|id| (*id).to_owned()).collect();
    counter_family(
        registry,
        "rule_hits",
        "Admission reviews in which a rule had a finding, by action.",
        &[("rule", ids), HitAction::label()],
    )
}

/// Registers the metrics of the stores, which are read at each scrape.
pub(super) fn register_stores(
    registry: &mut Registry,
    index: &Arc<RwLock<Index>>,
    readiness: &StoreReadiness,
) {
    // Including the stores that are off, so that the series do not depend on the configuration.
    let all: Vec<Store> = stores::stores(ForeignKinds::ALL).collect();
    let names = all.iter().map(|store| store.name.to_owned());
    let label = [("store", names.collect::<Vec<_>>())];
    let store = |indexes: &[usize]| indexes.first().and_then(|index| all.get(*index).copied());
    let objects = FixedFamily::new(
        "store_objects",
        "Objects in a store.",
        MetricType::Gauge,
        &label,
        |indexes| {
            let (index, store) = (Arc::clone(index), store(indexes));
            PolledMetric::gauge(move || {
                let index = index.read().unwrap_or_else(PoisonError::into_inner);
                let count = store.map_or(0, |store| index.count(store.kind));
                i64::try_from(count).unwrap_or(i64::MAX)
            })
        },
    );
    register_family(registry, objects);
    let synced = FixedFamily::new(
        "store_synced",
        "1 if a store has synced or its kind is not installed, else 0.",
        MetricType::Gauge,
        &label,
        |indexes| {
            let (readiness, store) = (readiness.clone(), store(indexes));
            PolledMetric::gauge(move || {
                let missing = readiness.missing();
                i64::from(store.is_some_and(|store| !missing.contains(&store.name)))
            })
        },
    );
    register_family(registry, synced);
    let ages = FixedFamily::new(
        "watch_age_seconds",
        "Seconds since the last response to the watch of a store; 0 if it is not watched.",
        MetricType::Gauge,
        &label,
        |indexes| {
            let (readiness, store) = (readiness.clone(), store(indexes));
            PolledMetric::gauge(move || {
                let age = store.map(|store| readiness.watch_age(store.name));
                i64::try_from(age.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
            })
        },
    );
    register_family(registry, ages);
}
