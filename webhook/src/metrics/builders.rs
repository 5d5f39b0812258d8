//! How the metrics with labels are made and registered.

use super::KindLabel;
use super::fixed_family::{FixedFamily, LabelValues, PolledMetric};
use super::labels::{AdmissionOutcome, ConversionOutcome, HitAction, OperationLabel, ReviewPath};
use crate::stores::{self, Store, StoreReadiness};
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_policies::index::Index;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::sync::{Arc, PoisonError, RwLock};

/// The value of a label for whatever has none of its own.
const OTHER_LABEL: &str = "other";

/// Registers a series and gives back the handle to it.
pub(super) fn register_family<M>(
    registry: &mut Registry,
    series: FixedFamily<M>,
) -> Arc<FixedFamily<M>>
where
    M: EncodeMetric + Send + Sync + 'static,
{
    let series = Arc::new(series);
    registry.register_collector(Box::new(Arc::clone(&series)));
    series
}

pub(super) fn counter_family(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    labels: &[LabelValues],
) -> Arc<FixedFamily<Counter>> {
    let made = FixedFamily::new(name, help, MetricType::Counter, labels, |_| {
        Counter::default()
    });
    register_family(registry, made)
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
        "Admission reviews that were answered.",
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
        "Conversion reviews that were answered.",
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
        "Admission reviews in which a rule found something, by what was done about it.",
        &[("rule", ids), HitAction::label()],
    )
}

/// The stores, as they are when somebody asks.
pub(super) fn register_stores(
    registry: &mut Registry,
    index: &Arc<RwLock<Index>>,
    readiness: &StoreReadiness,
) {
    let all: Vec<Store> = stores::stores(ForeignKinds::ALL).collect();
    let names = all.iter().map(|store| store.name.to_owned());
    let label = [("store", names.collect::<Vec<_>>())];
    let store = |place: &[usize]| place.first().and_then(|store| all.get(*store).copied());
    let objects = FixedFamily::new(
        "store_objects",
        "Objects that a store holds.",
        MetricType::Gauge,
        &label,
        |place| {
            let (index, store) = (Arc::clone(index), store(place));
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
        "Whether a store has listed everything once, or has nothing to list: 1, or 0.",
        MetricType::Gauge,
        &label,
        |place| {
            let (readiness, store) = (readiness.clone(), store(place));
            PolledMetric::gauge(move || {
                let missing = readiness.missing();
                i64::from(store.is_some_and(|store| !missing.contains(&store.name)))
            })
        },
    );
    register_family(registry, synced);
}
