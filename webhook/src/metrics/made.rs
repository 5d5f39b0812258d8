//! How the metrics with labels are made and registered.

use super::Kind;
use super::labels::{Conversion, HitAction, Operation, Outcome, Path};
use super::series::{Label, Probe, Series};
use crate::stores::{self, Readiness, Store};
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_policies::index::Index;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::sync::{Arc, PoisonError, RwLock};

/// The value of a label for whatever has none of its own.
const OTHER: &str = "other";

/// Registers a series and gives back the handle to it.
pub(super) fn series<M>(registry: &mut Registry, series: Series<M>) -> Arc<Series<M>>
where
    M: EncodeMetric + Send + Sync + 'static,
{
    let series = Arc::new(series);
    registry.register_collector(Box::new(Arc::clone(&series)));
    series
}

pub(super) fn counters(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    labels: &[Label],
) -> Arc<Series<Counter>> {
    let made = Series::new(name, help, MetricType::Counter, labels, |_| {
        Counter::default()
    });
    series(registry, made)
}

pub(super) fn requests(registry: &mut Registry, kinds: &[Kind]) -> Arc<Series<Counter>> {
    let names = kinds.iter().map(|kind| kind.label.clone());
    let kind = ("kind", names.chain([OTHER.to_owned()]).collect());
    counters(
        registry,
        "requests",
        "Admission reviews that were answered.",
        &[
            kind,
            Operation::label(),
            Path::of_admission(),
            Outcome::label(),
        ],
    )
}

pub(super) fn conversions(registry: &mut Registry) -> Arc<Series<Counter>> {
    counters(
        registry,
        "conversions",
        "Conversion reviews that were answered.",
        &[Conversion::label()],
    )
}

pub(super) fn rule_hits(registry: &mut Registry, rules: &[&str]) -> Arc<Series<Counter>> {
    let ids = rules.iter().map(|id| (*id).to_owned()).collect();
    counters(
        registry,
        "rule_hits",
        "Admission reviews in which a rule found something, by what was done about it.",
        &[("rule", ids), HitAction::label()],
    )
}

/// The stores, as they are when somebody asks.
pub(super) fn stores(registry: &mut Registry, index: &Arc<RwLock<Index>>, readiness: &Readiness) {
    let all: Vec<Store> = stores::stores(ForeignKinds::ALL).collect();
    let names = all.iter().map(|store| store.name.to_owned());
    let label = [("store", names.collect::<Vec<_>>())];
    let store = |place: &[usize]| place.first().and_then(|store| all.get(*store).copied());
    let objects = Series::new(
        "store_objects",
        "Objects that a store holds.",
        MetricType::Gauge,
        &label,
        |place| {
            let (index, store) = (Arc::clone(index), store(place));
            Probe::gauge(move || {
                let index = index.read().unwrap_or_else(PoisonError::into_inner);
                let count = store.map_or(0, |store| index.count(store.kind));
                i64::try_from(count).unwrap_or(i64::MAX)
            })
        },
    );
    series(registry, objects);
    let synced = Series::new(
        "store_synced",
        "Whether a store has listed everything once, or has nothing to list: 1, or 0.",
        MetricType::Gauge,
        &label,
        |place| {
            let (readiness, store) = (readiness.clone(), store(place));
            Probe::gauge(move || {
                let missing = readiness.missing();
                i64::from(store.is_some_and(|store| !missing.contains(&store.name)))
            })
        },
    );
    series(registry, synced);
}
